package validation

import (
	_ "github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	_ "github.com/nodewise/nodewise/integrations/kubernetes/internal/jobs"
	_ "github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	_ "sigs.k8s.io/jobset/pkg/webhooks"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/job"
)
