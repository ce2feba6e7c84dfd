// The image's own files, below /app: bundles with their compile cache, bill of materials, licences.
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEPLOYABLES, writeBundles } from '../../tools/build.ts';
import { billOfMaterials, licencesOf, type Package, packagesOf } from './bill-of-materials.ts';
import { writeCompileCache } from './compile-cache.ts';

const ROOT = join(import.meta.dirname, '../../..');

export interface Contents {
  readonly packages: ReadonlyArray<Package>;
  /** The Node.js that can use the compile cache. */
  readonly cacheFor: string;
}

/**
 * Writes `app` into the folder: all programs of Kubernetes and Knative. The same sources, Node.js and folder give the
 * same bytes.
 */
export async function writeContents(folder: string): Promise<Contents> {
  const app = join(folder, 'app');
  rmSync(app, { recursive: true, force: true });
  mkdirSync(app, { recursive: true });
  const programs = DEPLOYABLES.filter(({ platform }) => platform === 'node');
  const packages = packagesOf(await writeBundles(join(app, 'dist'), programs));
  writeFileSync(join(app, 'sbom.cdx.json'), billOfMaterials(packages));
  writeFileSync(join(app, 'licenses.txt'), licencesOf(packages));
  copyFileSync(join(ROOT, 'LICENSE'), join(app, 'LICENSE'));
  const entries = programs.map(({ output }) => output.replace('node/', ''));
  return { packages, cacheFor: writeCompileCache(app, entries) };
}
