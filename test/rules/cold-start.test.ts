// Modules that a cold function loads before its first answer: nothing that only messages, proxies or prices need.
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';
import { DEPLOYABLES } from '../../infra/tools/build.ts';

const root = join(import.meta.dirname, '../..');
const ADMISSION = 'infra/platforms/kubernetes/admission.ts';
const VALIDATE = 'crds/validation/validate.ts';
const OTEL = 'infra/runtime/node/otel.ts';
const NODE = DEPLOYABLES.filter(({ platform }) => platform === 'node');

/** What each module imports. */
let inputs: Metafile['inputs'];

beforeAll(async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...NODE.map(({ entry }) => entry), VALIDATE, OTEL],
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
  inputs = metafile.inputs;
});

/**
 * Every module that is read at start, and which other imports it: what `import()` reaches is loaded when it is needed.
 */
function readAtStart(entry: string): ReadonlyMap<string, string> {
  expect(inputs).toHaveProperty([entry]);
  const importers = new Map([[entry, '']]);
  for (const [path] of importers)
    for (const { kind, path: imported } of inputs[path]?.imports ?? [])
      if (kind !== 'dynamic-import' && !importers.has(imported)) importers.set(imported, path);
  return importers;
}

test('a cold admission function loads no schema library, no HTTP client and no price table', () => {
  const importers = readAtStart(ADMISSION);
  const heavy = [...importers].filter(([path]) => /node_modules\/(zod|undici|@kubernetes)\/|price-table/.test(path));
  expect(heavy.map(([path, importer]) => `${importer} → ${path}`)).toEqual([]);
  // What it does load is seen, so that nothing above is missed.
  expect([...importers.keys()].filter((path) => /node_modules\/hono\//.test(path))).not.toEqual([]);
});

test.each(DEPLOYABLES.filter(({ output }) => /^node\/(admission|reconcile|gateway)/.test(output)))(
  'where no collector is named, $output loads nothing of OpenTelemetry',
  ({ entry }) => {
    const importers = readAtStart(entry);
    expect([...importers.keys()].filter((path) => /@opentelemetry|node\/otel/.test(path))).toEqual([]);
    // It is there when it is needed.
    expect([...importers.keys()]).toContain('infra/runtime/node/traces.ts');
    expect([...readAtStart(OTEL).keys()].join(' ')).toContain('@opentelemetry/sdk-trace');
  },
);

test('the schemas are loaded with the first object', () => {
  const importers = readAtStart(VALIDATE);
  expect([...importers.keys()].some((path) => path.includes('node_modules/zod/'))).toBe(true);
});
