// Packages inside the bundles: as CycloneDX, from npm and the lock file, and with the texts of their licences.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE_VERSION } from '../../runtime/config/release.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** The price table is made of this package's data. */
const PRICES = 'node_modules/@pydantic/genai-prices';

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  /** Below the repository. */
  readonly folder: string;
}

interface Bill {
  readonly serialNumber?: string;
  readonly metadata: { readonly timestamp?: string; readonly component: object };
  readonly components: ReadonlyArray<{ readonly 'bom-ref': string }>;
  readonly dependencies: ReadonlyArray<{ readonly ref: string; readonly dependsOn: ReadonlyArray<string> }>;
}

/** The packages that these source files belong to, and that of the prices. */
export function packagesOf(sources: ReadonlyArray<string>): ReadonlyArray<Package> {
  const folders = sources.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set([...folders, PRICES])].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
    return { name, version, licence: license, folder };
  });
}

/** npm's bill of the lock file without what is not in the bundles, and without what differs from run to run. */
export function billOfMaterials(packages: ReadonlyArray<Package>): string {
  const { serialNumber: _, metadata, components, dependencies, ...rest } = npmBill();
  const { timestamp: __, ...always } = metadata;
  const own = `gateway-operator@${RELEASE_VERSION}`;
  const inside = new Set([own, ...packages.map(({ name, version }) => `${name}@${version}`)]);
  const found = components.filter((component) => inside.has(component['bom-ref']));
  const missing = [...inside].filter((ref) => ref !== own && found.every((component) => component['bom-ref'] !== ref));
  if (missing.length > 0) throw new Error(`package-lock.json does not have ${missing.join(', ')}`);
  const bill = {
    ...rest,
    metadata: { ...always, component: { ...metadata.component, type: 'application', name: 'gateway-operator' } },
    components: found,
    dependencies: dependencies
      .filter(({ ref }) => inside.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => inside.has(one)) })),
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function npmBill(): Bill {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
  return JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 }));
}

/** Every package with its licence files word for word; a package without such a file with the licence's name alone. */
export function licencesOf(packages: ReadonlyArray<Package>): string {
  return packages
    .map(({ name, version, licence, folder }) => {
      const files = readdirSync(join(ROOT, folder)).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
      const texts = files.sort().map((file) => readFileSync(join(ROOT, folder, file), 'utf8').trim());
      return [`${name} ${version} (${licence})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`)
    .concat('\n');
}
