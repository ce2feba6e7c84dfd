// `npm run deploy:workers`: builds the Workers and uploads them by `wrangler`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { reasonOf } from '#core/failure/error-text.ts';
import { DEPLOYABLES, writeBundles } from '../../tools/build.ts';
import { toUploads, type Upload } from './deployment.ts';

const HELP = `Deploys the reconciler, the admission webhook and the gateways of a settings file to Cloudflare Workers.

npm run deploy:workers -- FILE             docs/install/workers.md has an example of FILE
npm run deploy:workers -- FILE --dry-run   uploads nothing: wrangler checks what it would upload

WRANGLER names the program of wrangler; without it npx fetches the version that was tried.
`;

/** Wrangler is no dependency, because it installs a second workerd of 130 MB, and only this program calls it. */
const WRANGLER = 'wrangler@4.164.0';

async function deploy(file: string, isDry: boolean): Promise<void> {
  const uploads = toUploads(readSettings(file), file);
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-workers-'));
  try {
    const workers = DEPLOYABLES.filter(({ platform }) => platform === 'workerd');
    await writeBundles(folder, workers);
    // The reconciler is first, because the webhook is bound to it.
    for (const upload of uploads) wrangle(upload, join(folder, 'cloudflare'), isDry);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readSettings(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(
      `${file}: cannot be read (${reasonOf(error)}); docs/install/workers.md has an example of this file`,
    );
  }
}

/** Writes secrets into a file that only this user may read: a command line is visible to others. */
function wrangle({ worker, config, secrets }: Upload, folder: string, isDry: boolean): void {
  const write = (name: string, content: object): string => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
    return path;
  };
  const files = ['--config', write('wrangler.json', config), '--secrets-file', write('secrets.json', secrets)];
  const { WRANGLER: own } = process.env;
  const [program, ...before] = own ? [own] : ['npx', '--yes', WRANGLER];
  const args = [...before, 'deploy', '--no-bundle', ...files, ...(isDry ? ['--dry-run'] : [])];
  process.stdout.write(`\n${config.name} (${worker})\n`);
  execFileSync(program, args, { stdio: 'inherit' });
}

if (import.meta.main) {
  const options = { 'dry-run': { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [file, ...more] = positionals;
    if (values.help || file === undefined || more.length > 0) {
      process.stderr.write(HELP);
      process.exitCode = values.help ? 0 : 2;
    } else await deploy(file, values['dry-run'] === true);
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`);
    process.exitCode = 1;
  }
}
