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
