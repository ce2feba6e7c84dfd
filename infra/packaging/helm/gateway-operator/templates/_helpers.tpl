{{/* The image of all functions. */}}
{{- define "operator.image" -}}
{{- $image := .Values.image -}}
{{ required "image.repository is required: the repository that you pushed the image to (docs/install/image.md); an upgrade keeps its values with --reset-then-reuse-values" $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The labels that Kubernetes recommends, for every object but Pods. `name` is its function. */}}
{{- define "operator.labels" -}}
app.kubernetes.io/name: {{ .name | default "gateway-operator" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion }}
app.kubernetes.io/part-of: gateway-operator
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Labels and annotations of a Pod. A Secret that was lost and made again restarts Pods, which read it at their start. */}}
{{- define "operator.podMetadata" -}}
labels:
  app.kubernetes.io/name: {{ .name }}
  app.kubernetes.io/part-of: gateway-operator
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := .root.Values.podAnnotations }}
{{- if .root.Values.secret.create }}
{{- $live := (lookup "v1" "Secret" .root.Release.Namespace "gateway-operator").data | default dict }}
{{- $annotations = merge (dict "gateway-operator.dev/secret" ($live | toJson | sha256sum | trunc 16)) $annotations }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Every Pod of the operator meets the restricted profile. `fsGroup`: the group that may write to its volumes. */}}
{{- define "operator.podSpec" -}}
securityContext: { runAsNonRoot: true, seccompProfile: { type: RuntimeDefault }{{ with .fsGroup }}, fsGroup: {{ . }}{{ end }} }
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $.Values $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "operator.container" -}}
image: {{ include "operator.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
{{- end }}

{{/* The user by which the API server knows reconcile, whose writes are not reviewed. */}}
{{- define "operator.reconcileUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:reconcile
{{- end }}

{{/* The address and the token of reconcile, for the functions that call it. */}}
{{- define "operator.reconcileEnv" -}}
- { name: RECONCILE_URL, value: "http://reconcile.{{ .Release.Namespace }}.svc" }
- name: RECONCILE_TOKEN
  valueFrom: { secretKeyRef: { name: gateway-operator, key: reconcile-token } }
{{- end }}

{{/* The volume with further authorities, if there are any. */}}
{{- define "operator.caVolume" -}}
- name: ca
  configMap: { name: {{ .name }}, items: [{ key: {{ .key }}, path: ca.crt }] }
{{- end }}
