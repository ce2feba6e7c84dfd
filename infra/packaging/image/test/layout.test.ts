// The image's layout: valid by OCI's specification, the same bytes from the same folders, and configured as the
// Dockerfile says.
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { list } from 'tar';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { CONFIG } from '../config.ts';
import { writeLayout } from '../layout.ts';

const NAME = 'example.com/operator:1';

/** A base and contents, of a time of their own. */
function folders(changed: number) {
  const folder = temporaryFolder();
  const [base, contents] = [join(folder, 'base'), join(folder, 'contents')];
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, mode);
    utimesSync(path, changed, changed);
  };
  write(join(base, 'usr/local/bin/node'), 'node', 0o755);
  write(join(base, '.hidden'), 'x');
  symlinkSync('usr/local/bin', join(base, 'bin'));
  write(join(contents, 'app/dist/node/gateway.mjs'), 'gateway');
  write(join(contents, 'app/a.txt'), 'a');
  return { folder, base, contents, layout: join(folder, 'layout') };
}

const read = (layout: string, digest: string) => readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
const parse = (layout: string, digest: string) => JSON.parse(read(layout, digest).toString());
const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const indexOf = (layout: string) => JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));

/** `path mode time` of everything in a layer. */
function entriesOf(archive: Buffer): string[] {
  const entries: string[] = [];
  const parser = list({
    onReadEntry: ({ path, mode = 0, mtime }) => entries.push(`${path} ${mode.toString(8)} ${mtime?.getTime() ?? 0}`),
  });
  parser.end(archive);
  return entries;
}

test('every blob is named by its digest and described with its size, and every layer by the digest of its content', async () => {
  const { layout, ...from } = folders(1);
  const { digest } = await writeLayout({ layout, name: NAME, ...from });
  expect(JSON.parse(readFileSync(join(layout, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' });
  const index = indexOf(layout);
  expect(index).toMatchObject({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json' });
  expect(index.manifests).toHaveLength(1);
  expect(index.manifests[0]).toMatchObject({ digest, platform: { os: 'linux' } });
  expect(Object.values(index.manifests[0].annotations)).toEqual([NAME, '1']);
  const manifest = parse(layout, digest);
  expect(manifest).toMatchObject({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json' });
  const described = [index.manifests[0], manifest.config, ...manifest.layers];
  for (const { digest, size } of described) {
    expect(sha256(read(layout, digest))).toBe(digest);
    expect(read(layout, digest)).toHaveLength(size);
  }
  expect(readdirSync(join(layout, 'blobs/sha256'))).toHaveLength(described.length);
  expect(manifest.config.mediaType).toBe('application/vnd.oci.image.config.v1+json');
  const archives = manifest.layers.map(({ mediaType, digest }: { mediaType: string; digest: string }) => {
    expect(mediaType).toBe('application/vnd.oci.image.layer.v1.tar+gzip');
    return gunzipSync(read(layout, digest));
  });
  const config = parse(layout, manifest.config.digest);
  expect(config.rootfs).toEqual({ type: 'layers', diff_ids: archives.map(sha256) });
  expect(config.history).toHaveLength(2);
  expect(archives.map(entriesOf)).toEqual([
    [
      '.hidden 644 0',
      'bin 755 0',
      'usr/ 755 0',
      'usr/local/ 755 0',
      'usr/local/bin/ 755 0',
      'usr/local/bin/node 755 0',
    ],
    ['app/ 755 0', 'app/a.txt 644 0', 'app/dist/ 755 0', 'app/dist/node/ 755 0', 'app/dist/node/gateway.mjs 644 0'],
  ]);
});

test('the same files give the same bytes, whenever they were written', async () => {
  const digests = [];
  for (const changed of [1, 1_000_000]) {
    const { layout, ...from } = folders(changed);
    digests.push((await writeLayout({ layout, name: NAME, ...from })).digest);
  }
  expect(digests[0]).toBe(digests[1]);
});

test('on a layout as base the layers are stacked, and the environment of the base stays where ours says nothing', async () => {
  const { layout: base, ...from } = folders(1);
  await writeLayout({ layout: base, name: NAME, ...from });
  const { layout, ...others } = folders(1);
  const { digest, layers } = await writeLayout({ layout, name: NAME, ...others, base });
  expect(layers).toHaveLength(3);
  const { config } = parse(layout, digest);
  const { rootfs, config: settings } = parse(layout, config.digest);
  expect(rootfs.diff_ids).toEqual(layers.map(({ diffId }) => diffId));
  expect(settings.Env).toEqual(Object.entries(CONFIG.Env).map(([name, value]) => `${name}=${value}`));
  for (const { digest } of layers) expect(sha256(read(layout, digest))).toBe(digest);
});

test('a base without Node.js, and a folder that is not empty, are refused', async () => {
  const { layout, contents, base } = folders(1);
  await expect(writeLayout({ layout, name: NAME, contents, base: contents })).rejects.toThrow('has no program node in');
  await writeLayout({ layout, name: NAME, contents, base });
  await expect(writeLayout({ layout, name: NAME, contents, base })).rejects.toThrow('is not empty');
});

test('the Dockerfile configures its image in the same way', () => {
  const text = readFileSync(join(import.meta.dirname, '../Dockerfile'), 'utf8').replaceAll('\\\n', '');
  const last = text.slice(text.lastIndexOf('\nFROM '));
  const after = (word: string) => new RegExp(`^${word} (.*)$`, 'm').exec(last)?.[1] ?? '';
  const pairs = (line: string) =>
    Object.fromEntries(
      [...line.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g)].map(([, name, quoted, bare]) => [name, quoted ?? bare]),
    );
  expect({
    User: after('USER'),
    Env: pairs(after('ENV')),
    Entrypoint: JSON.parse(after('ENTRYPOINT')),
    WorkingDir: after('WORKDIR'),
    Labels: pairs(after('LABEL')),
  }).toEqual(CONFIG);
});
