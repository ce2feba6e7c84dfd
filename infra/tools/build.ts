// Bundles of the deployables: `npm run build` writes dist/; `--check` builds in memory and compares sizes with the
// budgets.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build, type Metafile, type OutputFile, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');

const HELP = `Bundles every deployable into minified ES modules.

npm run build                  writes dist/
npm run build -- --check       writes nothing; fails when a bundle has outgrown its budget
`;

export interface Deployable {
  readonly entry: string;
  /** Below the output folder. */
  readonly output: string;
  readonly platform: 'node' | 'workerd';
  /**
   * KiB after gzip of the files read at start, about a quarter above the measured size: growing beyond it is a
   * decision, not an accident.
   */
  readonly budget: number;
}

/** One file per deployable. Knative runs the Node bundles too. */
export const DEPLOYABLES: ReadonlyArray<Deployable> = [
  { entry: 'infra/platforms/kubernetes/admission.ts', output: 'node/admission.mjs', platform: 'node', budget: 70 },
  // 5 KiB of it came with prom-client, which takes 4 (decision 0035), and 2 with the variables and checks of the archive,
  // whose own code is loaded when it is needed.
  { entry: 'infra/platforms/kubernetes/reconcile.ts', output: 'node/reconcile.mjs', platform: 'node', budget: 245 },
  { entry: 'infra/platforms/kubernetes/request-resync.ts', output: 'node/trigger.mjs', platform: 'node', budget: 15 },
  { entry: 'infra/platforms/kubernetes/uninstall.ts', output: 'node/uninstall.mjs', platform: 'node', budget: 60 },
  { entry: 'infra/platforms/kubernetes/check.ts', output: 'node/check.mjs', platform: 'node', budget: 60 },
  { entry: 'infra/platforms/kubernetes/apply.ts', output: 'node/apply.mjs', platform: 'node', budget: 60 },
  {
    entry: 'infra/platforms/kubernetes/sample-upstream.ts',
    output: 'node/sample-upstream.mjs',
    platform: 'node',
    budget: 60,
  },
  { entry: 'infra/platforms/kubernetes/gateway.ts', output: 'node/gateway.mjs', platform: 'node', budget: 450 },
  {
    entry: 'infra/platforms/cloudflare/admission.ts',
    output: 'cloudflare/admission.mjs',
    platform: 'workerd',
    budget: 110,
  },
  {
    entry: 'infra/platforms/cloudflare/reconcile.ts',
    output: 'cloudflare/reconcile.mjs',
    platform: 'workerd',
    budget: 225,
  },
  {
    entry: 'infra/platforms/cloudflare/gateway.ts',
    output: 'cloudflare/gateway.mjs',
    platform: 'workerd',
    budget: 205,
  },
];

/** CommonJS packages inside an ES module ask for `require`. A Worker's module has no address of its own. */
const toRequire = (from: string) =>
  `import { createRequire as $createRequire } from 'node:module'; const require = $createRequire(${from});`;

/** Node's modules that older packages import without `node:`; workerd's nodejs_compat has them. */
const NODE_BUILTINS = 'assert buffer crypto dns events fs net path stream string_decoder tls url util'.split(' ');

type Options = BuildOptions & { readonly write: false; readonly metafile: true };

function optionsOf({ entry, output, platform }: Deployable, folder: string): Options {
  const common: Options = {
    absWorkingDir: ROOT,
    entryPoints: [{ in: entry, out: basename(output, '.mjs') }],
    outdir: join(folder, dirname(output)),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    legalComments: 'none',
    logLevel: 'silent',
  };
  if (platform === 'node') {
    // Modules imported by `import()` (a kubeconfig's library, a store's client) are files of their own.
    return {
      ...common,
      platform: 'node',
      plugins: [withoutHttp2],
      splitting: true,
      banner: { js: toRequire('import.meta.url') },
      external: ['pg-native'],
    };
  }
  const conditions = ['workerd', 'worker', 'browser'];
  const external = ['node:*', 'cloudflare:*', 'pg-native', ...NODE_BUILTINS];
  return { ...common, conditions, mainFields: ['module', 'main'], banner: { js: toRequire("'/'") }, external };
}

/**
 * Our servers speak HTTP/1.1 (serve.ts), and loading Node's HTTP/2 takes a tenth of a cold start: their adapter gets a
 * stand-in that no request is an instance of.
 */
const withoutHttp2: Plugin = {
  name: 'without-http2',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http2$/ }, ({ importer }) =>
      /node_modules[/\\]@hono[/\\]node-server[/\\]/.test(importer) ? { path: 'http2', namespace: 'absent' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'absent' }, () => ({
      contents: 'export class Http2ServerRequest {} export const constants = {};',
    }));
  },
};

/** The deployable as minified ES modules, which of them are read at start, and the sources. Writes nothing. */
async function bundle(deployable: Deployable, folder: string) {
  const { outputFiles, metafile } = await build(optionsOf(deployable, folder));
  const start = readAtStart(metafile.outputs, relative(ROOT, join(folder, deployable.output)));
  const first = outputFiles.filter(({ path }) => start.has(relative(ROOT, path)));
  const sources = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.keys(inputs).filter((path) => inputs[path]?.bytesInOutput !== 0),
  );
  return { files: outputFiles, first, sources };
}

/** The entry and its imports, direct or not, without those by `import()`. */
function readAtStart(outputs: Metafile['outputs'], entry: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const { path, kind, external } of outputs[entry]?.imports ?? []) {
    if (kind === 'import-statement' && external !== true) readAtStart(outputs, path, seen);
  }
  return seen;
}

/**
 * Bundles the deployables, each with its imports, into the folder; answers the source files that are in them, below the
 * repository.
 */
export async function writeBundles(folder: string, deployables = DEPLOYABLES): Promise<ReadonlyArray<string>> {
  const read: string[] = [];
  for (const deployable of deployables) {
    const { files, sources } = await bundle(deployable, folder);
    writeFiles(files);
    read.push(...sources);
  }
  return [...new Set(read)].sort();
}

function writeFiles(files: ReadonlyArray<OutputFile>): void {
  for (const { path, contents } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  }
}

const kibOf = (files: ReadonlyArray<OutputFile>, pack = (bytes: Uint8Array) => bytes): number =>
  files.reduce((sum, { contents }) => sum + pack(contents).length, 0) / 1024;

async function run(check: boolean): Promise<boolean> {
  const folder = join(ROOT, 'dist');
  // Names of chunks carry a hash: the old chunks would stay.
  if (!check) for (const part of ['node', 'cloudflare']) rmSync(join(folder, part), { recursive: true, force: true });
  let fits = true;
  for (const deployable of DEPLOYABLES) {
    const { files, first } = await bundle(deployable, folder);
    const packed = kibOf(first, gzipSync);
    const over = packed > deployable.budget;
    fits &&= !over;
    const later = kibOf(files) - kibOf(first);
    const sizes = `${kibOf(first).toFixed(0)} KiB, ${packed.toFixed(0)} KiB gzipped of ${deployable.budget}`;
    const rest = later === 0 ? '' : `; ${later.toFixed(0)} KiB more when it is needed`;
    process.stdout.write(`${over ? 'OVER' : 'ok  '}  ${deployable.output.padEnd(25)} ${sizes}${rest}\n`);
    if (!check) writeFiles(files);
  }
  return fits;
}

if (import.meta.main) {
  const [option, ...more] = process.argv.slice(2);
  if (more.length === 0 && (option === undefined || option === '--check')) {
    process.exitCode = (await run(option === '--check')) ? 0 : 1;
  } else {
    process.stderr.write(HELP);
    process.exitCode = option === '--help' ? 0 : 2;
  }
}
