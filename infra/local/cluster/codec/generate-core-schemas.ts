// Where do core-schemas.json and core-wire.json come from? From a real Kubernetes 1.34.4 (Apache-2.0): run this against one.
//   node infra/local/cluster/codec/generate-core-schemas.ts KUBECONFIG GO_MODULE_CACHE
// KUBECONFIG: a kube-apiserver v1.34.4, whose /openapi/v3 has the schemas. GO_MODULE_CACHE: where `go mod download`
// put k8s.io/{api,apimachinery,apiextensions-apiserver}@v0.34.4, whose generated.proto files have the field numbers.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { isObject, type JsonObject } from '../schema/json.ts';

const kinds: Readonly<Record<string, readonly string[]>> = {
  'api/v1':
    words(`ConfigMap DeleteOptions Endpoints Event LimitRange Namespace PersistentVolumeClaim Pod ResourceQuota Secret
    Service ServiceAccount Status`),
  'apis/admissionregistration.k8s.io/v1': words('MutatingWebhookConfiguration ValidatingWebhookConfiguration'),
  'apis/apiextensions.k8s.io/v1': words('CustomResourceDefinition'),
  'apis/apps/v1': words('DaemonSet Deployment ReplicaSet StatefulSet Scale'),
  'apis/authentication.k8s.io/v1': words('SelfSubjectReview TokenRequest TokenReview'),
  'apis/authorization.k8s.io/v1': words(
    'LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview',
  ),
  'apis/autoscaling/v2': words('HorizontalPodAutoscaler'),
  'apis/batch/v1': words('CronJob Job'),
  'apis/coordination.k8s.io/v1': words('Lease'),
  'apis/discovery.k8s.io/v1': words('EndpointSlice'),
  'apis/events.k8s.io/v1': words('Event'),
  'apis/networking.k8s.io/v1': words('Ingress NetworkPolicy'),
  'apis/policy/v1': words('PodDisruptionBudget'),
  'apis/rbac.authorization.k8s.io/v1': words('ClusterRole ClusterRoleBinding Role RoleBinding'),
};

const gvkKey = 'x-kubernetes-group-version-kind';

function main(kubeconfig: string, modules: string): void {
  const definitions = selectDefinitions(kubeconfig);
  writeLines('core-schemas.json', 'Kubernetes v1.34.4 /openapi/v3, Apache-2.0, trimmed', 'definitions', definitions);
  writeLines(
    'core-wire.json',
    'Kubernetes v1.34.4 generated.proto field numbers, Apache-2.0',
    'messages',
    numbers(modules, definitions),
  );
}

function words(text: string): string[] {
  return text.split(/\s+/);
}

/** The wanted kinds and everything they refer to, by name. */
function selectDefinitions(kubeconfig: string): Map<string, JsonObject> {
  const selected = new Map<string, JsonObject>();
  for (const [path, wanted] of Object.entries(kinds)) {
    const raw = execFileSync('kubectl', ['--kubeconfig', kubeconfig, 'get', '--raw', `/openapi/v3/${path}`], {
      maxBuffer: 2 ** 26,
    });
    const all = JSON.parse(raw.toString()).components.schemas as Record<string, JsonObject>;
    const take = (name: string): void => {
      const definition = all[name];
      if (definition === undefined || selected.has(name)) return;
      const trimmed = trim(definition, path);
      selected.set(name, trimmed);
      for (const reference of references(trimmed)) take(reference);
    };
    for (const [name, definition] of Object.entries(all)) {
      const own = (definition[gvkKey] ?? []) as ReadonlyArray<{ kind: string }>;
      if (own.some(({ kind }) => wanted.includes(kind))) take(name);
    }
  }
  return new Map([...selected].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Without the eighty groups that share DeleteOptions, and without the same three sentences on every kind (openapi.ts puts them back). */
function trim(definition: JsonObject, path: string): JsonObject {
  const trimmed = structuredClone(definition);
  const own = trimmed[gvkKey];
  if (Array.isArray(own) && own.length > 4) delete trimmed[gvkKey];
  const properties = (trimmed.properties ?? {}) as Record<string, JsonObject>;
  if (own !== undefined || path === '') {
    for (const name of ['apiVersion', 'kind']) delete properties[name]?.description;
  }
  return trimmed;
}

function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (!isObject(value)) return [];
  const here = typeof value.$ref === 'string' ? [value.$ref.slice(value.$ref.lastIndexOf('/') + 1)] : [];
  return [...here, ...Object.values(value).flatMap(references)];
}

/** Field numbers of every definition; a member that is not in the schema is a struct written inline: its own numbers, and `#` is its number. */
function numbers(modules: string, definitions: ReadonlyMap<string, JsonObject>): Map<string, JsonObject> {
  const root = new protobuf.Root();
  for (const file of globSync('k8s.io/{api,apimachinery,apiextensions-apiserver}@v0.34.4/**/generated.proto', {
    cwd: modules,
  })) {
    protobuf.parse(readFileSync(join(modules, file), 'utf8'), root, { keepCase: true });
  }
  const found = new Map<string, JsonObject>();
  for (const [name, definition] of definitions) {
    const message = root.lookup(name.replace(/^io\.k8s\./, 'k8s.io.').replaceAll('-', '_'), [protobuf.Type]);
    const properties = definition.properties;
    if (message instanceof protobuf.Type && isObject(properties)) found.set(name, fieldNumbers(message, properties));
  }
  return found;
}

function fieldNumbers(message: protobuf.Type, properties: JsonObject): JsonObject {
  const table: JsonObject = {};
  for (const field of message.fieldsArray) {
    if (Object.hasOwn(properties, field.name)) table[field.name] = field.id;
    else if (field.resolve().resolvedType instanceof protobuf.Type) {
      table[field.name] = { '#': field.id, ...fieldNumbers(field.resolvedType as protobuf.Type, properties) };
    }
  }
  return table;
}

function writeLines(file: string, source: string, member: string, values: ReadonlyMap<string, JsonObject>): void {
  const lines = [...values].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  writeFileSync(
    join(import.meta.dirname, file),
    `{"source":${JSON.stringify(source)},"${member}":{\n${lines.join(',\n')}\n}}\n`,
  );
}

const [kubeconfig, modules] = process.argv.slice(2);
if (kubeconfig === undefined || modules === undefined) {
  console.error('usage: generate-core-schemas.ts KUBECONFIG GO_MODULE_CACHE');
  process.exitCode = 2;
} else main(kubeconfig, modules);
