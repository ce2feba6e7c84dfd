// A real API server merges as the golden file says; `--update` records it anew.
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import { whyNoControlPlane } from '../../support/control-plane.ts';
import { type SharedControlPlane, sharedControlPlane } from '../../support/shared-servers.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { folderOf, type StrategicAnswer, type StrategicCase, strategicCases } from './cases.ts';

const why = whyNoControlPlane();

describeUnless(why, 'a real API server', () => {
  let server: SharedControlPlane;
  beforeAll(async () => {
    server = await sharedControlPlane();
  });

  test('merges as recorded', async () => {
    const lines: string[] = [];
    for (const [i, one] of strategicCases.entries())
      lines.push(`${JSON.stringify(one.name)}:${JSON.stringify(await answerTo(one, `case-${i}`))}`);
    await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot(
      join(import.meta.dirname, 'strategic.golden.json'),
    );
  });

  async function answerTo({ apiVersion, kind, target, patch }: StrategicCase, name: string): Promise<StrategicAnswer> {
    const metadata = { ...(target.metadata as JsonObject), name };
    const created = await server.call('POST', folderOf(kind), { apiVersion, kind, ...target, metadata });
    expect(created.code, JSON.stringify(created.body)).toBe(201);
    const headers = { 'content-type': 'application/strategic-merge-patch+json' };
    const { code, body } = await server.call('PATCH', `${folderOf(kind)}/${name}?dryRun=All`, patch, headers);
    const live = lasting(created.body as JsonObject);
    if (code < 300) return { live, patched: lasting(body as JsonObject) };
    return { live, refused: String((body as JsonObject).message).replaceAll(name, 'NAME') };
  }
});

/** The object without what differs from run to run. */
function lasting({ status, metadata, ...object }: JsonObject): JsonObject {
  const { labels, finalizers, ownerReferences } = metadata as JsonObject;
  return { ...object, metadata: JSON.parse(JSON.stringify({ labels, finalizers, ownerReferences })) };
}
