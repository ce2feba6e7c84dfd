// A real API server applies as the golden file says; `--update` records it anew.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../../support/control-plane.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { applyCases, widgetDefinition } from './cases.ts';
import { merging } from './merging.ts';
import { play } from './play.ts';

describeUnless(whyNoControlPlane(), 'a real API server', () => {
  let server: TestControlPlane;
  beforeAll(async () => {
    server = await startControlPlane();
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const created = await server.call('POST', path, widgetDefinition);
    expect(created.code, JSON.stringify(created.body)).toBe(201);
    await merging(server);
  });
  afterAll(() => server?.stop());

  test('applies as recorded', async () => {
    const cases: string[] = [];
    for (const [i, one] of applyCases.entries()) {
      const answers = await play(server.call, one, `case-${i}`);
      const lines = answers.map((answer) => JSON.stringify(answer));
      cases.push(`${JSON.stringify(one.name)}:[\n${lines.join(',\n')}\n]`);
    }
    await expect(`{\n${cases.join(',\n')}\n}\n`).toMatchFileSnapshot(join(import.meta.dirname, 'apply.golden.json'));
  });
});
