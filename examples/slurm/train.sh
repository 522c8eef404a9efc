#!/bin/bash
#SBATCH --job-name=cifar10
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#NODEWISE --profile=team-a/cifar10 --nodes=1-8 --objective=knee
#NODEWISE --global-batch=2048 --steps=3343 --gpus-per-node=auto
#NODEWISE --pattern="steps/s=([0-9.]+)"

# In place of a training, which would begin here with srun: it says how fast it was measured to be on so many nodes.
steps_per_second=(0 2.535 3.848 5.278 6.475)
for step in 100 200 300 400; do
    echo "step=$step steps/s=${steps_per_second[SLURM_JOB_NUM_NODES]}"
done
