// An image as an OCI image layout, without a container engine. The same folders give the same bytes.
import { createHash } from 'node:crypto';
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { create } from 'tar';
import { CONFIG } from './config.ts';

const TYPES = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const;

/** The time of all files of the image and of its creation, so that the same content has the same bytes. */
const MADE = new Date(0);

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
}

interface Layer extends Descriptor {
  /** The digest of the uncompressed archive. */
  readonly diffId: string;
  /** Bytes of the files; absent for a layer of another image. */
  readonly bytes?: number;
  readonly from: string;
}

interface Base {
  readonly architecture: string;
  readonly environment: ReadonlyArray<string>;
  readonly layers: ReadonlyArray<Layer>;
}

export interface ImageOptions {
  /** The new layout. */
  readonly layout: string;
  /** A root file system with Node.js as a folder, or an OCI layout with such an image. */
  readonly base: string;
  /** A folder whose content is the last layer. */
  readonly contents: string;
  /** The image's name, for engines that import the layout. */
  readonly name: string;
}

/** Writes the layout into an empty folder. Returns its layers and the digest of the manifest. */
export async function writeLayout({ layout, base: baseFolder, contents, name }: ImageOptions) {
  if (existsSync(layout) && readdirSync(layout).length > 0) throw new Error(`${layout} is not empty`);
  const isLayout = existsSync(join(baseFolder, 'oci-layout'));
  if (!isLayout && !CONFIG.Env.PATH.split(':').some((path) => existsSync(join(baseFolder, path, 'node'))))
    throw new Error(`${baseFolder} is no OCI layout and has no program node in ${CONFIG.Env.PATH}`);
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const base = isLayout
    ? await copyBase(layout, baseFolder)
    : {
        architecture: ARCHITECTURE,
        environment: [],
        layers: [await writeLayer(layout, baseFolder, 'the folder of the base')],
      };
  const layers = [...base.layers, await writeLayer(layout, contents, 'npm run image')];
  const config = writeJson(layout, TYPES.config, toConfig(base, layers));
  const manifest = writeJson(layout, TYPES.manifest, {
    schemaVersion: 2,
    mediaType: TYPES.manifest,
    config,
    layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
  });
  const platform = { architecture: base.architecture, os: 'linux' };
  // The first annotation is containerd's, which imports the image under this name.
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name.split(':').at(-1) };
  const index = { schemaVersion: 2, mediaType: TYPES.index, manifests: [{ ...manifest, platform, annotations }] };
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return { layers, digest: manifest.digest };
}

/** The architecture of this machine, as OCI names it. */
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

function toConfig({ architecture, environment }: Base, layers: ReadonlyArray<Layer>): object {
  const kept = environment.filter((line) => !Object.keys(CONFIG.Env).some((name) => line.startsWith(`${name}=`)));
  const Env = [...kept, ...Object.entries(CONFIG.Env).map(([name, value]) => `${name}=${value}`)];
  return {
    created: MADE.toISOString(),
    architecture,
    os: 'linux',
    config: { ...CONFIG, Env },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ from }) => ({ created: MADE.toISOString(), created_by: from })),
  };
}

/** A folder as a compressed archive: sorted, without owners, with one time for all files. */
async function writeLayer(layout: string, folder: string, from: string): Promise<Layer> {
  const options = { cwd: folder, portable: true, mtime: MADE, noDirRecurse: true, noPax: true };
  const archive = create(options, pathsBelow(folder));
  const content = createHash('sha256');
  let bytes = 0;
  const counted = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      content.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  const unnamed = join(layout, 'blobs/sha256/layer');
  await pipeline(archive, counted, createGzip(), createWriteStream(unnamed));
  const digest = digestOf(readFileSync(unnamed));
  renameSync(unnamed, blob(layout, digest));
  const diffId = `sha256:${content.digest('hex')}`;
  return {
    mediaType: TYPES.layer,
    digest,
    size: statSync(blob(layout, digest)).size,
    diffId,
    bytes,
    from,
  };
}

/** Paths of everything below the folder, each folder before what is in it. Links are not followed. */
function pathsBelow(folder: string, under = ''): string[] {
  const entries = readdirSync(join(folder, under), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(under, entry.name);
    return entry.isDirectory() ? [path, ...pathsBelow(folder, path)] : [path];
  });
}

/** The layers of the image in a layout: the one of this machine's architecture, or the only one. */
async function copyBase(layout: string, folder: string): Promise<Base> {
  const read = (digest: string) => JSON.parse(readFileSync(blob(folder, digest), 'utf8'));
  const manifests = (index: { manifests: Descriptor[] }): Descriptor[] =>
    index.manifests.flatMap((one) => (/index|list/.test(one.mediaType) ? manifests(read(one.digest)) : [one]));
  const all = manifests(JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')));
  const ours = all.length === 1 ? all[0] : all.find(({ platform }) => platform?.architecture === ARCHITECTURE);
  if (ours === undefined) throw new Error(`${folder} has no image for linux/${ARCHITECTURE}`);
  const { config, layers } = read(ours.digest) as { config: Descriptor; layers: Descriptor[] };
  const { architecture, rootfs, config: { Env = [] } = {} } = read(config.digest);
  for (const { digest } of layers) await copyFile(blob(folder, digest), blob(layout, digest));
  const from = `the base, ${ours.digest}`;
  return {
    architecture,
    environment: Env,
    layers: layers.map((one, at) => ({ ...one, diffId: rootfs.diff_ids[at], from })),
  };
}

function writeJson(layout: string, mediaType: string, value: object): Descriptor {
  const text = JSON.stringify(value);
  const digest = digestOf(text);
  writeFileSync(blob(layout, digest), text);
  return { mediaType, digest, size: Buffer.byteLength(text) };
}

const digestOf = (content: string | Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const blob = (layout: string, digest: string) => join(layout, 'blobs', digest.replace(':', '/'));
