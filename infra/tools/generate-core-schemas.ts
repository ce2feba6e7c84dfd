// Where do core-schemas.json and core-wire.json come from? From a real Kubernetes 1.34.4 (Apache-2.0): run this against one.
//   node infra/tools/generate-core-schemas.ts KUBECONFIG GO_MODULE_CACHE
// KUBECONFIG: a kube-apiserver v1.34.4, whose /openapi/v3 has the schemas. GO_MODULE_CACHE: where `go mod download`
// put k8s.io/{api,apimachinery,apiextensions-apiserver}@v0.34.4, whose generated.proto files have the field numbers.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import protobuf from 'protobufjs';
import { isObject, type JsonObject } from '../apiserver/schema/json.ts';

const kinds: Readonly<Record<string, readonly string[]>> = {
  'api/v1': words(`ConfigMap DeleteOptions Endpoints Event Namespace PersistentVolumeClaim Pod ResourceQuota Secret
    Service ServiceAccount Status TokenRequest`),
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

/**
 * Field numbers of every definition. A number below zero is that of a field whose zero is not written in JSON, which Go
 * always writes in protobuf. A member that is not in the schema is a struct written inline: its own numbers, and `#` is its number.
 */
function numbers(modules: string, definitions: ReadonlyMap<string, JsonObject>): Map<string, JsonObject> {
  const root = new protobuf.Root();
  const omitted = new Set<string>();
  const pattern = 'k8s.io/{api,apimachinery,apiextensions-apiserver}@v0.34.4/**/generated.proto';
  for (const file of globSync(pattern, { cwd: modules })) {
    const parsed = protobuf.parse(readFileSync(join(modules, file), 'utf8'), root, { keepCase: true });
    for (const field of omittedZeros(join(modules, dirname(file)))) omitted.add(`${parsed.package}.${field}`);
  }
  const found = new Map<string, JsonObject>();
  for (const [name, definition] of definitions) {
    const message = root.lookup(name.replace(/^io\.k8s\./, 'k8s.io.').replaceAll('-', '_'), [protobuf.Type]);
    const properties = definition.properties;
    if (message instanceof protobuf.Type && isObject(properties)) {
      found.set(name, fieldNumbers(message, properties, omitted));
    }
  }
  return found;
}

function fieldNumbers(message: protobuf.Type, properties: JsonObject, omitted: ReadonlySet<string>): JsonObject {
  const table: JsonObject = {};
  for (const field of message.fieldsArray) {
    const lower = field.name.charAt(0).toLowerCase() + field.name.slice(1);
    const name = Object.hasOwn(properties, field.name) ? field.name : lower;
    const zero = omitted.has(`${message.fullName.slice(1)}.${name}`);
    if (Object.hasOwn(properties, name)) table[name] = zero ? -field.id : field.id;
    else if (field.resolve().resolvedType instanceof protobuf.Type) {
      const inline = fieldNumbers(field.resolvedType as protobuf.Type, properties, omitted);
      table[field.name] = { '#': field.id, ...inline };
    }
  }
  return table;
}

/** `Struct.member` of every field in a Go package that is no pointer and is left out of JSON when it is zero. */
function omittedZeros(folder: string): string[] {
  const sources = globSync('*.go', { cwd: folder }).filter((file) => !/generated|_test/.test(file));
  const found: string[] = [];
  for (const source of sources) {
    const text = readFileSync(join(folder, source), 'utf8');
    for (const [, struct, body = ''] of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
      for (const [, type = '', member, options = ''] of body.matchAll(/^\s+\w+\s+(\S+)\s+`json:"(\w+)((?:,\w+)*)"/gm)) {
        if (!type.startsWith('*') && /omitempty|omitzero/.test(options)) found.push(`${struct}.${member}`);
      }
    }
  }
  return found;
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
