// Generated files: CRD manifests, the references of fields and of conditions, the price table, the script of accounts,
// the chart's values, rendered manifests, the samples in pages, and the table of source size.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { isEstimated, RATE_KINDS, WINDOWED_RATES } from '#core/ports/rates.ts';
import { toManifest } from '#crds/generators/crd.ts';
import { toReference } from '#crds/generators/reference-page.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import { CHART, renderManifest, staleManifests, toChartFiles } from './chart.ts';
import { toConditionsPage } from './conditions-page.ts';
import { toMetricsPage } from './metrics-page.ts';
import { toPriceTable } from './price-table.ts';
import { pagesWithSamples, SAMPLES } from './samples.ts';
import { withSourceSize } from './source-size.ts';

const MANIFESTS = 'crds/manifests';
const PRICES = 'functions/core/money/price-table.json';
const SCRIPT = 'infra/adapters/redis/account.json';
const LUA = 'infra/adapters/redis/account.lua';
const KINDS = 'infra/platforms/kubernetes/crds.yaml';
const ALERTS = 'infra/platforms/kubernetes/alerts.yaml';
const MEASUREMENTS = 'docs/internals/bench.md';

const HELP = `Writes the generated files: ${MANIFESTS}/*.yaml, docs/reference/fields.md, docs/reference/conditions.md, ${PRICES},
${SCRIPT}, ${KINDS}, values, CRDs and alerts of the chart in ${CHART},
manifests that Helm renders from it (infra/platforms/kubernetes, infra/packaging/quickstart), the samples of ${SAMPLES}
in the pages that show them, and the table of source size in ${MEASUREMENTS}. Only a changed chart needs Helm.

npm run generate               writes them
npm run generate -- --check    writes nothing; names the files that would change, and fails if there are any
npm run generate -- --help     this text
`;

/** Every file that is generated whole and without Helm: its path below the root of the repository, and its text. */
export function generated(): ReadonlyMap<string, string> {
  const manifests = kinds.map((kind) => [`${MANIFESTS}/${kind.plural}.yaml`, toYaml(toManifest(kind))] as const);
  const others = [
    ['docs/reference/fields.md', toReference()],
    ['docs/reference/conditions.md', toConditionsPage()],
    ['docs/reference/metrics.md', toMetricsPage()],
    [PRICES, toPriceTable()],
    [LUA, toLua()],
    [SCRIPT, toScript()],
    [KINDS, manifests.map(([, text]) => text).join('---\n')],
    ...manifests.map(([path, text]) => [`${CHART}/files/crds/${basename(path)}`, text] as const),
    [`${CHART}/files/alerts.yaml`, toAlerts()],
    ...toChartFiles(),
  ] as const;
  return new Map([...manifests, ...others]);
}

/** The files below `root` that are not what they should be: changed, missing, or a manifest of no kind. */
export function stale(root: string): readonly string[] {
  const files = generated();
  const changed = [...files].filter(([path, text]) => !hasText(join(root, path), text)).map(([path]) => path);
  const pages = [...pagesWithSamples(root)].filter(([path, text]) => !hasText(join(root, path), text));
  return [
    ...changed,
    ...orphans(root, files),
    ...staleManifests(root),
    ...pages.map(([path]) => path),
    ...(isSizeStale(root) ? [MEASUREMENTS] : []),
  ];
}

/** Makes the files below `root` what they should be, and names those that it touched. */
export function write(root: string): readonly string[] {
  const files = generated();
  const touched = [...stale(root)];
  const pages = pagesWithSamples(root);
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const path of orphans(root, files)) rmSync(join(root, path));
  for (const path of touched) {
    const text = files.get(path) ?? pages.get(path);
    if (text !== undefined) put(path, text);
  }
  if (isSizeStale(root)) put(MEASUREMENTS, withSourceSize(readFileSync(join(root, MEASUREMENTS), 'utf8')));
  // Rendered from the values that were just written.
  for (const path of staleManifests(root)) {
    put(path, renderManifest(root, path));
    if (!touched.includes(path)) touched.push(path);
  }
  return touched;
}

/** Whether the page is there and its table differs from the source by more than the tolerance. */
function isSizeStale(root: string): boolean {
  const path = join(root, MEASUREMENTS);
  return existsSync(path) && !hasText(path, withSourceSize(readFileSync(path, 'utf8')));
}

/**
 * The text of a `.lua` file as a module that every bundler reads, without lines of comments and indentation: servers
 * without the script are sent it.
 */
function toScript(): string {
  const text = toLua();
  return `${JSON.stringify(text.replaceAll(/^\s*(?:--.*)?\n|^ +/gm, ''))}\n`;
}

/** The script, with the windows of the table of rates. */
function toLua(): string {
  const text = readFileSync(join(import.meta.dirname, '../../', LUA), 'utf8');
  const kinds = WINDOWED_RATES.map((kind) => `'${kind}'`).join(', ');
  const windows = WINDOWED_RATES.map((kind) => `${kind} = ${RATE_KINDS[kind].window}`).join(', ');
  const estimated = WINDOWED_RATES.filter(isEstimated).map((kind) => `${kind} = true`);
  return text.replace(
    /^local KINDS, WINDOWS, IS_ESTIMATED = .*$/m,
    `local KINDS, WINDOWS, IS_ESTIMATED = { ${kinds} }, { ${windows} }, { ${estimated.join(', ')} }`,
  );
}

/** A copy: of a link in a chart Helm prints a line at each installation. */
function toAlerts(): string {
  const text = readFileSync(join(import.meta.dirname, '../../', ALERTS), 'utf8');
  return `# Generated by \`npm run generate\` from ${ALERTS}; edit that.\n${text}`;
}

/**
 * Go's YAML reads `on` and `yes` as booleans, so they are quoted (version 1.1); long lines stay whole, for the diff.
 */
function toYaml(manifest: object): string {
  const text = stringify(manifest, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
  return `# Generated by \`npm run generate\` from crds/*.ts; edit those.\n${text}`;
}

const hasText = (path: string, text: string) => existsSync(path) && readFileSync(path, 'utf8') === text;

function orphans(root: string, files: ReadonlyMap<string, string>): string[] {
  const folder = join(root, MANIFESTS);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => `${MANIFESTS}/${name}`).filter((path) => !files.has(path));
}

function main([option, ...more]: readonly string[]): number {
  const check = option === '--check';
  if (more.length > 0 || (option !== undefined && !check)) {
    process.stderr.write(HELP);
    return option === '--help' ? 0 : 2;
  }
  const root = join(import.meta.dirname, '../..');
  const paths = check ? stale(root) : write(root);
  const done = check ? 'would change' : 'written';
  process.stdout.write(
    paths.length === 0 ? 'generate: nothing to do\n' : `${paths.map((path) => `${done}: ${path}`).join('\n')}\n`,
  );
  if (check && paths.length > 0) process.stderr.write('generate: run `npm run generate` and commit the result\n');
  return check && paths.length > 0 ? 1 : 0;
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
