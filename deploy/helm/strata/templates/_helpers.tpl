{{- define "strata.name" -}}
{{- if contains "strata" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-strata" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "strata.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "strata.selector" -}}
app.kubernetes.io/name: strata
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "strata.labels" -}}
{{ include "strata.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: strata-{{ .root.Chart.Version }}
{{- end }}

{{- define "strata.secret" -}}
{{ .Values.secrets.existing | default (include "strata.name" .) }}
{{- end }}

{{/* A variable. Helm reads numbers as floats, and would write a million as 1e+06. */}}
{{- define "strata.variable" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "strata.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What every container has: image, environment, rights and folders. */}}
{{- define "strata.container" -}}
image: {{ include "strata.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - configMapRef: {name: {{ include "strata.name" . }}}
  - secretRef: {name: {{ include "strata.secret" . }}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "strata.volumes" -}}
- name: tmp
  emptyDir: {}
- name: data
  {{- if .Values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (include "strata.name" .) }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}

{{/* The pods of a part: .root, .part, .values, .container (YAML), .grace (seconds). */}}
{{- define "strata.pods" -}}
metadata:
  labels:
    {{- include "strata.labels" . | nindent 4 }}
  annotations:
    checksum/config: {{ include (print .root.Template.BasePath "/configuration.yaml") .root | sha256sum }}
    {{- with .root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  # Variables for services begin with STRATA_, too.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  securityContext:
    {{- include "strata.podSecurity" . | nindent 4 }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  initContainers:
    # The job creates the tables. The command prints only errors, such as an invalid setting.
    - name: wait-for-tables
      {{- include "strata.container" .root | nindent 6 }}
      command: [sh, -c, "until strata migrate --check; do sleep 2; done"]
  containers:
    - name: {{ .part }}
      {{- include "strata.container" .root | nindent 6 }}
      {{- .container | trim | nindent 6 }}
      {{- with .values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  volumes:
    {{- include "strata.volumes" .root | nindent 4 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "strata.selector" . | nindent 10 }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
