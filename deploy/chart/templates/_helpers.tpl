{{- define "larder.labels" -}}
app.kubernetes.io/name: larder
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "larder.selector" -}}
app.kubernetes.io/name: larder
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "larder.secret" -}}
{{- if .Values.token.value }}{{ .Release.Name }}-token{{ else }}{{ required "token.existingSecret or token.value is required" .Values.token.existingSecret }}{{ end -}}
{{- end -}}

{{- define "larder.fleetSecret" -}}
{{- if .Values.fleet.key }}{{ .Release.Name }}-fleet{{ else }}{{ required "fleet.existingSecret or fleet.key is required" .Values.fleet.existingSecret }}{{ end -}}
{{- end -}}

{{- /* The URLs of all replicas as a YAML list; each replica recognises its own. */ -}}
{{- define "larder.peers" -}}
{{- range $number := until (int .Values.replicas) }}
- http://{{ $.Release.Name }}-{{ $number }}.{{ $.Release.Name }}-headless:8080
{{- end }}
{{- end -}}

{{- /* The configuration file. What `config` states is not replaced. */ -}}
{{- define "larder.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.fleet.enabled -}}
{{- $config = merge $config (dict "fleet" (dict "peers" (include "larder.peers" . | fromYamlArray))) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* Seconds from SIGTERM until connections are refused: shutdownDelay, or fleet.leaveTimeout if that is longer. */ -}}
{{- define "larder.delay" -}}
{{- if .Values.fleet.enabled }}{{ max 5 (int .Values.fleet.leaveTimeoutSeconds) }}{{ else }}5{{ end -}}
{{- end -}}
