{{- define "nodewise.labels" -}}
app.kubernetes.io/name: nodewise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* By HTTPS, as the kubelet's gRPC probes speak no TLS. It has no certificate to show either: where one is asked for, that the port is open is all it sees. */}}
{{- define "nodewise.probe" -}}
{{- if dig "tls" "client_authorities" "" .root.Values.settings -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ .path }}, port: http, scheme: HTTPS}
{{- end }}
{{- end }}

{{- /* The names of the processes of nodewise-kubernetes that are enabled, as JSON. */}}
{{- define "nodewise.integrations" -}}
{{- $enabled := list }}
{{- range $process := list "allocator" "check" "collector" "extender" "recommender" "webhook" }}
{{- if (get $.Values.integrations $process).enabled }}{{ $enabled = append $enabled $process }}{{ end }}
{{- end }}
{{- if and .Values.integrations.server (not $enabled) }}
{{- fail "integrations.server names a server elsewhere, but no process is enabled; set integrations.check.enabled or another's, or leave integrations.server empty" }}
{{- end }}
{{- toJson $enabled }}
{{- end }}

{{- define "nodewise.integrations.labels" -}}
app.kubernetes.io/name: nodewise-kubernetes
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The variables by which the processes of nodewise-kubernetes reach the server. */}}
{{- define "nodewise.integrations.environment" -}}
{{- $variables := dict "NODEWISE_SERVER" (.Values.integrations.server | default (printf "%s.%s.svc:50551" .Release.Name .Release.Namespace)) "NODEWISE_TLS_CA" "/etc/nodewise/server/ca.crt" }}
{{- with .Values.settings.authentication }}
{{- if or (has "tokens" .) (has "jwt" .) }}{{ $_ := set $variables "NODEWISE_TOKEN_FILE" "/etc/nodewise/server/token" }}{{ end }}
{{- end }}
{{- if dig "tls" "client_authorities" "" .Values.settings }}
{{- $_ := set $variables "NODEWISE_TLS_CERT" "/etc/nodewise/server/tls.crt" }}
{{- $_ := set $variables "NODEWISE_TLS_KEY" "/etc/nodewise/server/tls.key" }}
{{- end }}
{{- range $variable, $value := .Values.integrations.environment }}{{ $_ := set $variables $variable $value }}{{ end }}
{{- toYaml $variables }}
{{- end }}
