// `npm run image`: the image without a container engine, or its files for the Dockerfile beside this file.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { reasonAndCausesOf } from '../../../functions/core/failure/error-text.ts';
import { RELEASE_IMAGE } from '../../runtime/config/release.ts';
import { type Contents, writeContents } from './contents.ts';
import { writeLayout } from './layout.ts';

const HELP = `Makes the image of every function.

npm run image -- --oci DIR --base DIR [--name ${RELEASE_IMAGE}]
    DIR of --oci gets the image as an OCI image layout. DIR of --base has the root file system under it: a folder, or an OCI layout
    of an image (crane pull --format=oci). It must have Node.js ${process.versions.node.split('.')[0]} on the path /usr/local/bin:/nodejs/bin:/usr/bin.
npm run image -- --folder DIR
    DIR gets the files that the Dockerfile puts on its base.
`;

/** Always the same folder, because the compile cache contains its path. */
const STAGE = join(import.meta.dirname, '../../../dist/image');

const OPTIONS = { oci: 'string', base: 'string', name: 'string', folder: 'string', help: 'boolean' } as const;

async function main(): Promise<number> {
  const options = Object.fromEntries(Object.entries(OPTIONS).map(([name, type]) => [name, { type }]));
  const {
    oci,
    base,
    folder,
    help,
    name = RELEASE_IMAGE,
  } = parseArgs({ options }).values as Partial<Record<string, string>>;
  if (folder !== undefined && oci === undefined) {
    tellContents(await writeContents(folder));
    return 0;
  }
  if (oci === undefined || base === undefined || folder !== undefined) {
    process.stderr.write(HELP);
    return help === undefined ? 2 : 0;
  }
  await writeImage(oci, base, name);
  return 0;
}

async function writeImage(layout: string, base: string, name: string): Promise<void> {
  tellContents(await writeContents(STAGE));
  const { layers, digest } = await writeLayout({ layout, base, contents: STAGE, name });
  for (const { digest: layer, bytes, size, from } of layers) {
    const files = bytes === undefined ? '' : `${toMegabytes(bytes)}, `;
    print(`layer ${layer.slice(0, 19)}: ${files}${toMegabytes(size)} compressed, from ${from}`);
  }
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  print(`image ${name}@${digest}: ${toMegabytes(total)} compressed`);
}

function tellContents({ packages, cacheFor }: Contents): void {
  print(
    `app: dist/node, sbom.cdx.json and licenses.txt of ${packages.length} packages, compile-cache of Node.js ${cacheFor}`,
  );
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const toMegabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

process.exitCode = await main().catch((error) => {
  process.stderr.write(`${reasonAndCausesOf(error)}\n`);
  return 1;
});
