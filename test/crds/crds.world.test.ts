// The CRDs on a real API server: it accepts the manifests, and validates as `validate` does.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { type Kind, kindOf, kinds } from '#crds/kinds/kinds.ts';
import { CATEGORY } from '#crds/names/group.ts';
import { cases } from '#crds/test/cases/all.ts';
import { type Case, good, type Manifest, objectsOf } from '#crds/test/cases/case.ts';
import { validate } from '#crds/validation/validate.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { type Mutant, mutant } from '../support/crds-mutants.ts';
import { eventually } from '../support/eventually.ts';
import { runs } from '../support/runs.ts';
import { type SharedControlPlane, sharedControlPlane } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';

const why = whyNoControlPlane();
const manifests = join(import.meta.dirname, '../../crds/manifests');

describeUnless(why, 'a real API server', () => {
  let server: SharedControlPlane;

  beforeAll(async () => {
    server = await sharedControlPlane();
    kubectl('apply', '-f', manifests);
    await Promise.all(kinds.map(established));
  });

  const kubectl = (...args: string[]) =>
    execFileSync('kubectl', ['--kubeconfig', server.kubeconfig, ...args], {
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
    });

  /** The kind is served: every rule is within the cost that the API server allows. */
  async function established(kind: Kind): Promise<void> {
    await eventually(
      () => server.call('GET', folderOf(kind)),
      ({ code }) => code === 200,
    );
  }

  test('kubectl explains what a connection to the database reads by a fixed name, and what open defaults allow', async () => {
    const explained = (field: string) =>
      eventually(
        // A new kind is not in the server's discovery immediately: until then the command fails.
        async () => {
          try {
            return kubectl('explain', `gatewayinstances.spec.${field}`);
          } catch (error) {
            return String(error);
          }
        },
        (text) => text.includes('DESCRIPTION'),
      );
    const database = await explained('databaseSecretRef');
    for (const words of ['sslmodeSecret', 'prefer']) expect(database).toContain(words);
    expect(await explained('keyValueInStatus')).toContain('Redacted');
    expect(await explained('allowedNamespaces.from')).toMatch(/any\s+namespace/);
  });

  async function verdict(one: Case): Promise<{ accepted: boolean; message: string }> {
    const kind = kindOf[one.kind];
    const { object, old } = objectsOf(one);
    if (old === undefined)
      return outcomeOf(
        await server.call('POST', `${folderOf(kind)}?dryRun=All&fieldValidation=Strict`, full(kind, object)),
      );
    const path = `${folderOf(kind)}/${old.metadata.name}`;
    const stored = await server.call('POST', folderOf(kind), full(kind, old));
    expect(stored.code, JSON.stringify(stored.body)).toBe(201);
    const { metadata } = stored.body as { metadata: object };
    const answer = await server.call('PUT', `${path}?dryRun=All&fieldValidation=Strict`, {
      ...full(kind, object),
      metadata,
    });
    await server.call('DELETE', path);
    return outcomeOf(answer);
  }

  test.each(cases)('validates a $kind $what as we do', async (one) => {
    const { accepted, message } = await verdict(one);
    expect({ accepted, message: accepted ? '' : message }).toEqual({
      accepted: one.findings.length === 0,
      message: one.findings.length === 0 ? '' : expect.any(String),
    });
    for (const finding of one.findings) expect(message).toContain(fieldIn(finding));
  });

  test('accepts exactly the objects that we accept', async () => {
    const validated = async ({ kind: name, object }: Mutant) => {
      const kind = kindOf[name];
      const found = validate(kind, object).violations;
      const path = `${folderOf(kind)}?dryRun=All&fieldValidation=Ignore`;
      const { accepted, message } = outcomeOf(await server.call('POST', path, full(kind, object)));
      expect(accepted, JSON.stringify({ message, found })).toBe(found.length === 0);
    };
    await fc.assert(fc.asyncProperty(mutant, validated), { numRuns: runs(1000) });
  });

  test('says `unchanged` when the same manifests and objects are applied again', () => {
    for (const line of lines(kubectl('apply', '-f', manifests))) expect(line).toMatch(/ unchanged$/);
    const objects = JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: kinds.map((kind) => full(kind, good[kind.kind])),
    });
    const apply = () =>
      lines(
        execFileSync('kubectl', ['--kubeconfig', server.kubeconfig, 'apply', '-f', '-'], {
          input: objects,
          encoding: 'utf8',
        }),
      );
    for (const line of apply()) expect(line).toMatch(/ created$/);
    for (const line of apply()) expect(line).toMatch(/ unchanged$/);
  });

  test('lists all kinds of the category, by short names, with their columns', () => {
    expect(lines(kubectl('get', CATEGORY, '-o', 'name'))).toHaveLength(kinds.length);
    const heads = kinds.map((kind) => lines(kubectl('get', kind.shortNames[0] ?? ''))[0]?.split(/ {2,}/));
    expect(heads).toEqual([
      ['NAME', 'URL', 'READY', 'KEYS', 'AGE'],
      ['NAME', 'ALIAS', 'READY', 'SPEND', 'BUDGET', 'RESETS', 'AGE'],
      ['NAME', 'EMAIL', 'READY', 'SPEND', 'BUDGET', 'RESETS', 'AGE'],
      ['NAME', 'ALIAS', 'READY', 'SPEND', 'BUDGET', 'RESETS', 'AGE'],
    ]);
    const wide = kinds.map((kind) => lines(kubectl('get', kind.shortNames[0] ?? '', '-o', 'wide'))[0]?.split(/ {2,}/));
    expect(wide.map((head = [], index) => head.slice(heads[index]?.length))).toEqual([
      ['REASON'],
      ['REASON', 'INSTANCE', 'POLICY', 'DELETION'],
      ['REASON', 'INSTANCE'],
      ['REASON', 'INSTANCE'],
    ]);
  });

  test('finds keys by alias and by instance without listing them all', () => {
    expect(lines(kubectl('get', 'vk', '--field-selector', 'spec.keyAlias=app', '-o', 'name'))).toHaveLength(1);
    expect(lines(kubectl('get', 'vk', '--field-selector', 'spec.keyAlias=other', '-o', 'name'))).toHaveLength(0);
    expect(
      lines(
        kubectl(
          'get',
          'vk,gwuser,gwteam',
          '--field-selector',
          'spec.connectionRef.instanceRef.name=proxy',
          '-o',
          'name',
        ),
      ),
    ).toHaveLength(3);
    expect(
      lines(kubectl('get', 'gwuser', '--field-selector', 'spec.userEmail=ada@example.com', '-o', 'name')),
    ).toHaveLength(1);
    expect(lines(kubectl('get', 'gwteam', '--field-selector', 'spec.teamAlias=Search', '-o', 'name'))).toHaveLength(1);
  });

  test('fills in every default that the reference names', () => {
    const { spec } = JSON.parse(kubectl('get', 'gwi', 'proxy', '-o', 'json')) as Manifest;
    const instance = kinds.find(({ kind }) => kind === 'GatewayInstance');
    expect(spec).toEqual(instance?.spec.parse(good.GatewayInstance.spec));
  });

  test('keeps a status that has all its members', async () => {
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'Ready',
      message: '',
      lastTransitionTime: '2026-11-21T13:00:00Z',
      observedGeneration: 1,
    };
    const status = {
      currentSpend: '0.000000001',
      budgetResetDate: '2026-12-21T13:00:00Z',
      observedGeneration: 1,
      conditions: [condition],
    };
    for (const kind of kinds.filter(({ kind }) => kind !== 'GatewayInstance')) {
      const path = `${folderOf(kind)}/${good[kind.kind].metadata.name}`;
      const stored = await server.call('GET', path);
      const answer = await server.call('PUT', `${path}/status?fieldValidation=Strict`, {
        ...(stored.body as object),
        status,
      });
      expect(answer.code, JSON.stringify(answer.body)).toBe(200);
      expect(answer.body).toMatchObject({ status });
    }
  });
});

const folderOf = ({ apiVersion, plural }: Kind) => `/apis/${apiVersion}/namespaces/default/${plural}`;

const full = ({ apiVersion, kind }: Kind, object: Manifest) => ({ apiVersion, kind, ...object });

function outcomeOf({ code, body }: { code: number; body: unknown }): { accepted: boolean; message: string } {
  const { message = '' } = body as { message?: string };
  return { accepted: code < 300, message };
}

/** The fields of the API server's message. It names a repeated entry as a whole, every other field as we do. */
const fieldIn = ([rule, path]: Case['findings'][number]) =>
  rule === 'Duplicate' ? path.slice(0, path.lastIndexOf(']') + 1) : path;

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '');
