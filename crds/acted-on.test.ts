// Is every field of every spec either acted on or listed in docs/not-yet-acted-on.md, and none both?
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { notYetActedOn, unactedIn } from './acted-on.ts';
import { good } from './cases/case.ts';
import { fieldsOf } from './fields.ts';
import { gatewayInstances, type Kind, kinds } from './kinds.ts';

const root = join(import.meta.dirname, '..');

/** Read these files what they will, it has no effect by itself: they copy specs, describe them, or check that they are well formed. */
const INERT =
  /^functions\/core\/(compile|snapshot)\.ts$|^functions\/reconcile\/observe\/(objects|own)\.ts$|\.(test|fixture|promises)\.ts$/;

/** Where specs are acted on. Admission only judges; the embedded cluster knows no kind of ours. */
const acting = sources('functions/{reconcile,core}/**/*.ts', 'infra/{adapters,knative,kubernetes,cloudflare}/**/*.ts');
/** Where the compiled instance is acted on. */
const serving = sources('functions/{gateway,core}/**/*.ts', 'infra/adapters/upstream/*.ts');

function sources(...patterns: string[]): readonly string[] {
  return globSync(patterns, { cwd: root })
    .filter((file) => !INERT.test(file))
    .map((file) => withoutHandedOn(file, withoutComments(readFileSync(join(root, file), 'utf8'))));
}

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

/** A user's limits are copied to the user's own key; whether they are acted on shows where keys are. */
function withoutHandedOn(file: string, source: string): string {
  return file.endsWith('/owned-key.ts') ? source.replace(/\b(rpmLimit|tpmLimit|maxParallelRequests)\b/g, '') : source;
}

const withoutStrings = (source: string) => source.replace(/'(?:[^'\\\n]|\\.)*'/g, "''");

/** What the compiler calls a field of the instance that it passes on to the gateway, with what it stands in. */
const PASSED_ON: ReadonlyArray<readonly [spec: RegExp, snapshot: string]> = [
  [/^models\[\]\.gatewayParams\.inputCostPerMillionTokens$/, 'price.input'],
  [/^models\[\]\.gatewayParams\.outputCostPerMillionTokens$/, 'price.output'],
  [/^models\[\]\.gatewayParams\.cachedInputCostPerMillionTokens$/, 'price.cachedInput'],
  [/^models\[\]\.gatewayParams\.cacheWriteCostPerMillionTokens$/, 'price.cacheWrite'],
  [/^models\[\]\.gatewayParams\.customLLMProvider$/, 'entry.provider'],
  [/^models\[\]\.gatewayParams\.(\w+)$/, 'entry.$1'],
  [/^models\[\]\.modelCredentials\.keys$/, 'entry.credentials'],
  [/^models\[\]\.(\w+)$/, 'entry.$1'],
  [/^routing\.(\w+)$/, 'routing.$1'],
  [/^routing\.(\w+\.\w+)$/, '$1'],
];

/** Whoever reads these copies them as they stand into a field of Kubernetes that means the same: what is below them is acted on there. */
const COPIED = /^(workload\.(?:env|resources))\b.+$/;

function isActedOn(given: string): boolean {
  const path = given.replace(COPIED, '$1');
  const passedOn = PASSED_ON.find(([spec]) => spec.test(path));
  if (reads(acting, `spec.${path}`)) return true;
  return passedOn !== undefined && reads(serving, path.replace(...passedOn));
}

/** Whether one of the files reads the last name of the path where the name before it stands. */
function reads(files: readonly string[], path: string): boolean {
  const [parent = '', name = ''] = path
    .replaceAll(/\[\]|\{\}/g, '')
    .split('.')
    .slice(-2);
  return files.some((source) => {
    const file = withoutStrings(source);
    return (
      readsFrom(file, parent, name) || (knowsParts(files, source) && parent !== 'spec' && mentions(file, parent, name))
    );
  });
}

/** Elsewhere `env` and `value` are anything: a part of a spec is met where our kinds are imported, or where only its copy is. */
function knowsParts(files: readonly string[], source: string): boolean {
  return files !== acting || source.includes("from '#crds/");
}

function readsFrom(file: string, parent: string, name: string): boolean {
  return [
    // spec.models, spec?.models
    `\\b${parent}\\??\\.${name}\\b`,
    // const { models } = key.spec;
    `\\{[^{}]*\\b${name}\\b[^{}]*\\}\\s*=\\s*[\\w.?!]*\\b${parent}\\s*[;,)]`,
    // ({ spec: { models } }) =>
    `\\b${parent}\\s*:\\s*\\{[^{}]*\\b${name}\\b[^{}]*\\}\\s*[,}]`,
  ].some((pattern) => new RegExp(pattern).test(file));
}

/** A part that was handed on under another name: the file knows the part, and takes the member out of something. */
function mentions(file: string, parent: string, name: string): boolean {
  if (!new RegExp(`\\b${parent}\\b`, 'i').test(file)) return false;
  return [`\\.${name}\\b`, `\\{[^{}]*\\b${name}\\b[^{}]*\\}\\s*(=[^=>]|:\\s*[A-Z]|\\)\\s*(:[^=\\n]*)?=>)`].some(
    (pattern) => new RegExp(pattern).test(file),
  );
}

/** Fields that hold no other fields: what holds them is acted on when they are. */
function leavesOf(kind: Kind): readonly string[] {
  const paths = fieldsOf(kind, 'spec').map(({ path }) => path.slice('spec.'.length));
  return paths.filter(
    (path) => !paths.some((other) => other.startsWith(path) && /^(\[\]|\{\})?\./.test(other.slice(path.length))),
  );
}

const covers = (entry: string, path: string) =>
  path === entry || (path.startsWith(entry) && /^[.[{]/.test(path.slice(entry.length)));

const everyLeaf = () =>
  kinds.flatMap((kind) => {
    const entries = notYetActedOn[kind.kind];
    return leavesOf(kind).map((path) => ({ kind, path, isListed: entries.some((entry) => covers(entry, path)) }));
  });

const named = ({ kind, path }: { kind: Kind; path: string }) => `${kind.kind} spec.${path}`;

test('a field of a spec is acted on, or listed as not yet acted on', () => {
  const ignored = everyLeaf().filter(({ path, isListed }) => !isListed && !isActedOn(path));
  expect(ignored.map(named), 'act on these, or list them in crds/acted-on.ts').toEqual([]);
});

test('a field that is listed as not yet acted on is not acted on', () => {
  const stale = everyLeaf().filter(({ path, isListed }) => isListed && isActedOn(path));
  expect(stale.map(named), 'these are acted on, take them out of crds/acted-on.ts').toEqual([]);
});

test('a value that is listed as not yet acted on is not acted on', () => {
  const values = Object.values(notYetActedOn).flatMap((entries) =>
    entries.flatMap((entry) => entry.split('=').slice(1)),
  );
  const stale = values.filter((value) => acting.some((file) => file.includes(`'${value}'`)));
  expect(stale, 'these are acted on, take them out of crds/acted-on.ts').toEqual([]);
});

test.each([
  ['spec.rotation.every', 'const { every } = key.spec.rotation;', true],
  ['spec.rotation.every', 'due(key.spec.rotation?.every)', true],
  ['spec.rotation.every', 'function due(rotation: Rotation) { return parse(rotation.every); }', true],
  ['spec.rotation.every', 'function due({ every, overlap }: Rotation) {}', true],
  ['spec.rotation.every', 'names.every((name) => name)', false],
  ['spec.duration', 'function expiryOf({ spec: { duration } }: VirtualKey) {}', true],
  ['spec.duration', 'windowAt(budget.duration)', false],
  ['spec.duration', 'const spec = key.spec; const { duration } = budget;', false],
  ['spec.metadata', 'const { metadata, spec } = key;', false],
  ['spec.tags', 'key.spec.tagsOf', false],
  ['models[].modelName', 'spec.models.map(({ modelName }) => modelName)', true],
  ['spec.workload.scale.min', 'spec.scale; Math.min(1)', true],
])('%s is looked for: %s', (path, source, found) => {
  expect(reads([source], path)).toBe(found);
});

test('what a spec asks for in vain is found, and what it leaves at its default is not', () => {
  for (const kind of kinds) expect(unactedIn(kind, kind.spec.parse(good[kind.kind].spec))).toEqual([]);
  for (const kind of kinds) {
    for (const odd of [
      undefined,
      null,
      1,
      'spec',
      [],
      { models: 1, routing: [], rotation: null },
      { models: [null] },
    ]) {
      expect(unactedIn(kind, odd), JSON.stringify(odd)).toEqual([]);
    }
  }
});

test('what is found names the entry of the list, the value and nothing that is as usual', () => {
  const spec = {
    models: [{ gatewayParams: {} }, { gatewayParams: { priority: 2 } }],
    routing: { strategy: 'LeastBusy', retries: 2, cooldown: { duration: '30s', within: '30s', failures: 4 } },
    workload: { type: 'Auto', env: [], scale: { max: 3 } },
    keyValueInStatus: 'Full',
  };
  const entries = [
    'models[].gatewayParams.priority',
    'routing',
    'workload.env',
    'workload.scale',
    'workload.type',
    'keyValueInStatus=Redacted',
  ];
  expect(unactedIn(gatewayInstances, spec, entries)).toEqual([
    { path: 'spec.models[1].gatewayParams.priority', value: 2 },
    { path: 'spec.routing', value: spec.routing },
    { path: 'spec.workload.scale', value: { max: 3 } },
  ]);
  expect(unactedIn(gatewayInstances, { keyValueInStatus: 'Redacted' }, entries)).toHaveLength(1);
});
