// How does each deployable become one file? `npm run build` writes dist/; `--check` builds in memory and holds it to the budgets.
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

interface Deployable {
  readonly entry: string;
  readonly output: string;
  readonly platform: 'node' | 'workerd';
  /** KiB after gzip; a bundle that grows beyond it is a decision, not an accident. */
  readonly budget: number;
}

/** One file per deployable. Knative runs the Node bundles too. */
export const DEPLOYABLES: ReadonlyArray<Deployable> = [
  { entry: 'infra/kubernetes/admission.ts', output: 'dist/node/admission.mjs', platform: 'node', budget: 700 },
  { entry: 'infra/kubernetes/reconcile.ts', output: 'dist/node/reconcile.mjs', platform: 'node', budget: 800 },
  { entry: 'infra/kubernetes/gateway.ts', output: 'dist/node/gateway.mjs', platform: 'node', budget: 400 },
  { entry: 'infra/cloudflare/admission.ts', output: 'dist/cloudflare/admission.mjs', platform: 'workerd', budget: 150 },
  { entry: 'infra/cloudflare/reconcile.ts', output: 'dist/cloudflare/reconcile.mjs', platform: 'workerd', budget: 250 },
];

/** CommonJS packages inside an ES module ask for `require`. */
const REQUIRE =
  "import { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);";

function optionsOf({ entry, output, platform }: Deployable): BuildOptions {
  const common: BuildOptions = {
    absWorkingDir: ROOT,
    entryPoints: [{ in: entry, out: basename(output, '.mjs') }],
    outdir: dirname(output),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2024',
    legalComments: 'none',
    logLevel: 'silent',
  };
  if (platform === 'node') {
    // What only a kubeconfig needs (half a megabyte) is a file of its own, read when it is needed.
    return { ...common, platform: 'node', splitting: true, banner: { js: REQUIRE }, external: ['pg-native'] };
  }
  const conditions = ['workerd', 'worker', 'browser'];
  const external = ['node:*', 'cloudflare:*', 'pg-native', ...NODE_BUILTINS];
  return { ...common, conditions, mainFields: ['module', 'main'], external };
}

/** What older packages import without `node:`; workerd's nodejs_compat has them. */
const NODE_BUILTINS = 'assert buffer crypto dns events fs net path stream string_decoder tls url util'.split(' ');

export interface BuiltFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly contents: Uint8Array;
}

/** The deployable as minified ES modules: itself first, then what it imports when it needs it. */
export async function bundle(deployable: Deployable): Promise<ReadonlyArray<BuiltFile>> {
  const { outputFiles = [] } = await build(optionsOf(deployable));
  const files = outputFiles.map(({ path, contents }) => ({ path: relative(ROOT, path), contents }));
  const isEntry = ({ path }: BuiltFile) => path === deployable.output;
  return [...files.filter(isEntry), ...files.filter((file) => !isEntry(file))];
}

async function run(check: boolean): Promise<boolean> {
  let fits = true;
  for (const deployable of DEPLOYABLES) {
    const files = await bundle(deployable);
    const contents = files[0]?.contents ?? new Uint8Array();
    const kib = gzipSync(contents).length / 1024;
    const over = kib > deployable.budget;
    fits &&= !over;
    const sizes = `${(contents.length / 1024).toFixed(0)} KiB, ${kib.toFixed(0)} KiB gzipped of ${deployable.budget}`;
    process.stdout.write(`${over ? 'OVER' : 'ok  '}  ${deployable.output.padEnd(32)} ${sizes}\n`);
    if (check) continue;
    for (const file of files) {
      mkdirSync(dirname(join(ROOT, file.path)), { recursive: true });
      writeFileSync(join(ROOT, file.path), file.contents);
    }
  }
  return fits;
}

if (import.meta.main) process.exitCode = (await run(process.argv.includes('--check'))) ? 0 : 1;
