// What does a cold admission function load before its first answer? Nothing that only words, proxies or prices need.
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { DEPLOYABLES } from '../../infra/tools/build.ts';

const root = join(import.meta.dirname, '../..');
const ENTRY = 'infra/kubernetes/admission.ts';

/** Every module that is read at start: what `import()` reaches is loaded when it is needed. */
async function readAtStart(entry: string): Promise<ReadonlyMap<string, string>> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    splitting: true,
    outdir: 'unwritten',
    external: ['pg-native'],
    logLevel: 'silent',
  });
  const importers = new Map([[entry, '']]);
  for (const [path] of importers)
    for (const { kind, path: imported } of metafile.inputs[path]?.imports ?? [])
      if (kind !== 'dynamic-import' && !importers.has(imported)) importers.set(imported, path);
  return importers;
}

test('a cold admission function loads no schema library, no HTTP client and no price table', async () => {
  const importers = await readAtStart(ENTRY);
  const heavy = [...importers].filter(([path]) => /node_modules\/(zod|undici|@kubernetes)\/|price-table/.test(path));
  expect(heavy.map(([path, importer]) => `${importer} → ${path}`)).toEqual([]);
  // What it does load is seen, so that nothing above is missed.
  expect([...importers.keys()].filter((path) => /crds\/accepted|node_modules\/hono\//.test(path))).not.toEqual([]);
});

test.each(DEPLOYABLES.filter(({ output }) => /^node\/(admission|reconcile|gateway)/.test(output)))(
  'where no collector is named, $output loads nothing of OpenTelemetry',
  async ({ entry }) => {
    const importers = await readAtStart(entry);
    expect([...importers.keys()].filter((path) => /@opentelemetry|node\/otel/.test(path))).toEqual([]);
    // It is there when it is needed.
    expect([...importers.keys()]).toContain('infra/node/traces.ts');
    expect([...(await readAtStart('infra/node/otel.ts')).keys()].join(' ')).toContain('@opentelemetry/sdk-trace');
  },
);

test('what the words of a refusal need is loaded with the first bad object', async () => {
  const importers = await readAtStart('crds/judge.ts');
  expect([...importers.keys()].some((path) => path.includes('node_modules/zod/'))).toBe(true);
});
