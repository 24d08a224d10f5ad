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
