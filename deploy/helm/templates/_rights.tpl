{{- /* What each process of nodewise-kubernetes may do in the cluster, by its name. */}}

{{- define "nodewise.rights.allocator" -}}
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, patch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [list]} # jobs stay within the quotas of Kueue
- {apiGroups: [kueue.x-k8s.io], resources: [clusterqueues], verbs: [get]}
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- end }}

{{- define "nodewise.rights.check" -}}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads, admissionchecks], verbs: [get, list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads/status, admissionchecks/status], verbs: [patch]}
- {apiGroups: [kueue.x-k8s.io], resources: [resourceflavors], verbs: [get]}
- {apiGroups: [batch], resources: [jobs], verbs: [get]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs, clustertrainingruntimes, trainingruntimes], verbs: [get]}
- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get]}
- {apiGroups: [ray.io], resources: [rayjobs, rayclusters], verbs: [get]}
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- end }}

{{- define "nodewise.rights.collector" -}}
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
# The jobs that own pods: their annotations, restarts, and what their training reports.
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list, watch]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list, watch]}
- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get, list, watch]}
- {apiGroups: [ray.io], resources: [rayjobs, rayclusters], verbs: [get, list, watch]}
{{- end }}

{{- define "nodewise.rights.extender" -}}
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
{{- end }}

{{- define "nodewise.rights.recommender" -}}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list, watch, patch]}
- {apiGroups: [trainer.kubeflow.org], resources: [clustertrainingruntimes, trainingruntimes], verbs: [get]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, delete]} # suspended ones with another number of nodes
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- end }}

{{- define "nodewise.rights.webhook" -}}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, patch]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get, list, watch, patch]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs], verbs: [get, list, watch, patch]}
- {apiGroups: [trainer.kubeflow.org], resources: [trainjobs/status], verbs: [patch]}
- {apiGroups: [trainer.kubeflow.org], resources: [clustertrainingruntimes, trainingruntimes], verbs: [get]}
- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get, list, watch, patch]}
- {apiGroups: [ray.io], resources: [rayjobs, rayclusters], verbs: [get, list, watch, patch]}
- {apiGroups: [kubeflow.org], resources: [mpijobs, tfjobs, xgboostjobs, paddlejobs, jaxjobs], verbs: [get, list, watch]}
- {apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- end }}
