// Schemas and protobuf messages of the core kinds that the API server serves, from a real Kubernetes 1.34.4
// (Apache-2.0).
//   node infra/tools/generate-core-schemas.ts KUBECONFIG GO_MODULE_CACHE
// KUBECONFIG: a kube-apiserver v1.34.4, whose /openapi/v3 has the schemas. GO_MODULE_CACHE: where `go mod download`
// put k8s.io/{api,apimachinery}@v0.34.4, whose generated.proto files have the messages.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import protobuf from 'protobufjs';
import { isObject, type JsonObject } from '../apiserver/schema/json.ts';

const kinds: Readonly<Record<string, string>> = {
  'api/v1': 'ConfigMap DeleteOptions Event Namespace Pod Secret Service ServiceAccount Status',
  'apis/admissionregistration.k8s.io/v1': 'MutatingWebhookConfiguration ValidatingWebhookConfiguration',
  'apis/apiextensions.k8s.io/v1': 'CustomResourceDefinition',
  'apis/apps/v1': 'Deployment',
  'apis/authentication.k8s.io/v1': 'SelfSubjectReview',
  'apis/authorization.k8s.io/v1': 'SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview',
  'apis/autoscaling/v2': 'HorizontalPodAutoscaler',
  'apis/batch/v1': 'CronJob Job',
  'apis/coordination.k8s.io/v1': 'Lease',
  'apis/policy/v1': 'PodDisruptionBudget',
  'apis/rbac.authorization.k8s.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
};

const gvkKey = 'x-kubernetes-group-version-kind';

function main(kubeconfig: string, modules: string): void {
  const definitions = selectDefinitions(kubeconfig);
  writeLines('schema/core-schemas.json', '/openapi/v3', { definitions });
  writeLines('codec/core-messages.json', 'generated.proto', { nested: selectMessages(modules, definitions) });
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
      const trimmed = trim(definition) as JsonObject;
      selected.set(name, trimmed);
      for (const reference of references(trimmed)) take(reference);
    };
    for (const [name, definition] of Object.entries(all)) {
      const own = (definition[gvkKey] ?? []) as ReadonlyArray<{ kind: string }>;
      if (own.some(({ kind }) => wanted.split(' ').includes(kind))) take(name);
    }
  }
  return new Map([...selected].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Without descriptions and the eighty groups that share DeleteOptions; a reference with a default beside it is the
 * reference alone.
 */
function trim(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(trim);
  if (!isObject(node)) return node;
  const { allOf } = node;
  if (Array.isArray(allOf) && allOf.length === 1) return allOf[0];
  const entries = Object.entries(node).filter(
    ([key, value]) =>
      !(key === 'description' && typeof value === 'string') &&
      !(key === gvkKey && Array.isArray(value) && value.length > 4),
  );
  return Object.fromEntries(entries.map(([key, value]) => [key, trim(value)]));
}

function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (!isObject(value)) return [];
  const here = typeof value.$ref === 'string' ? [value.$ref.slice(value.$ref.lastIndexOf('/') + 1)] : [];
  return [...here, ...Object.values(value).flatMap(references)];
}

/**
 * The messages of all kinds but CRDs and everything they refer to, as protobufjs reads them. Fields have the names of
 * their JSON members; `inline` marks a struct whose members JSON writes into its parent, `omitzero` a field that JSON
 * leaves out when it is zero, which Go always writes in protobuf.
 */
function selectMessages(modules: string, definitions: ReadonlyMap<string, JsonObject>): Map<string, JsonObject> {
  const root = new protobuf.Root();
  const tags = new Map<string, Tag>();
  for (const file of globSync('k8s.io/{api,apimachinery}@v0.34.4/**/generated.proto', { cwd: modules })) {
    const parsed = protobuf.parse(readFileSync(join(modules, file), 'utf8'), root, { keepCase: true });
    for (const [member, tag] of goTags(join(modules, dirname(file)))) tags.set(`.${parsed.package}.${member}`, tag);
  }
  root.resolveAll();
  const found = new Map<string, JsonObject>();
  const take = (message: protobuf.Type): void => {
    const name = flatName(message.fullName);
    if (found.has(name)) return;
    found.set(name, {});
    const fields = Object.fromEntries(message.fieldsArray.map((field) => fieldOf(field, tags)));
    found.set(name, { edition: 'proto2', fields });
    for (const { resolvedType } of message.fieldsArray) if (resolvedType instanceof protobuf.Type) take(resolvedType);
  };
  take(root.lookupType('k8s.io.apimachinery.pkg.runtime.Unknown'));
  for (const [name, definition] of definitions) {
    const message = root.lookup(name.replace(/^io\.k8s\./, 'k8s.io.').replaceAll('-', '_'), [protobuf.Type]);
    if (message instanceof protobuf.Type && (definition[gvkKey] !== undefined || name.endsWith('.DeleteOptions')))
      take(message);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** `.k8s.io.api.core.v1.Secret` → `io_k8s_api_core_v1_Secret`. */
function flatName(fullName: string): string {
  return fullName.replace(/^\.k8s\.io\./, 'io.k8s.').replaceAll('.', '_');
}

function fieldOf(field: protobuf.Field, tags: ReadonlyMap<string, Tag>): [string, JsonObject] {
  const { name = field.name, options } = tags.get(`${field.parent?.fullName}.${field.name}`) ?? {};
  const type = field.resolvedType === null ? field.type : flatName(field.resolvedType.fullName);
  const rule = field.repeated ? { rule: 'repeated' } : {};
  const keyType = field instanceof protobuf.MapField ? { keyType: field.keyType } : {};
  return [name || field.name, { ...keyType, ...rule, type, id: field.id, ...(options && { options }) }];
}

type Tag = { readonly name: string; readonly options?: JsonObject };

/**
 * How JSON names and writes the fields of a Go package's structs, by `Struct.field`, the field as protobuf names it.
 */
function goTags(folder: string): Array<[string, Tag]> {
  const sources = globSync('*.go', { cwd: folder }).filter((file) => !/generated|_test/.test(file));
  return sources.flatMap((source) => {
    const structs = readFileSync(join(folder, source), 'utf8').matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm);
    return [...structs].flatMap(([, struct, body = '']) => {
      const fields = body.matchAll(
        /^\s+(?:\w+\s+)?(\S+)\s+`json:"(\w*)((?:,\w+)*)"[^`]* protobuf:"[^"]*\bname=(\w+)/gm,
      );
      return [...fields].map(([, type = '', name = '', json = '', field]): [string, Tag] => {
        if (json.includes('inline')) return [`${struct}.${field}`, { name, options: { inline: true } }];
        const omitted = !type.startsWith('*') && /omitempty|omitzero/.test(json);
        return [`${struct}.${field}`, { name, ...(omitted && { options: { omitzero: true } }) }];
      });
    });
  });
}

/** One value a line, for the diff. */
function writeLines(file: string, source: string, parts: Record<string, ReadonlyMap<string, JsonObject>>): void {
  const members = Object.entries(parts).map(([member, values]) => {
    const lines = [...values].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    return `"${member}":{\n${lines.join(',\n')}\n}`;
  });
  const text = `{"source":"Kubernetes v1.34.4 ${source}, Apache-2.0, trimmed",${members}}\n`;
  writeFileSync(join(import.meta.dirname, '../apiserver', file), text);
}

const [kubeconfig, modules] = process.argv.slice(2);
if (kubeconfig === undefined || modules === undefined) {
  console.error('usage: generate-core-schemas.ts KUBECONFIG GO_MODULE_CACHE');
  process.exitCode = 2;
} else main(kubeconfig, modules);
