-- A plugin of slurmctld (JobSubmitPlugins=lua): tells the user of plain sbatch that only nodewise-sbatch reads the script's #NODEWISE lines.
-- slurmctld holds its locks while this runs, so nothing here waits for a server. Every job is accepted as it is, whatever fails.

local HINT = "the lines #NODEWISE of this script are read by nodewise-sbatch alone; nothing was predicted, and the run is not recorded"

-- asks reports whether a script of one component names a profile in lines that stand where #SBATCH may.
local function asks(script)
   local named = false
   for line in (script .. "\n"):gmatch("(.-)\r?\n") do
      local first = line:match("^%s*(.)")
      if first and first ~= "#" then
         break
      end
      if line:match("^#SBATCH%s+hetjob") or line:match("^#SBATCH%s+packjob") then
         return false
      end
      named = named or line:match("^#NODEWISE%s.*%-%-profile[=%s]") ~= nil
   end
   return named
end

-- noted reports whether nodewise-sbatch submitted the job, or left no environment to see it.
local function noted(environment)
   return environment == nil or environment["NODEWISE_JOB"] ~= nil or environment["SLURM_GET_USER_ENV"] ~= nil
end

function slurm_job_submit(job_desc, part_list, submit_uid)
   pcall(function()
      if job_desc.script and asks(job_desc.script) and not noted(job_desc.environment) then
         slurm.log_user("%s", HINT)
      end
   end)
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end
