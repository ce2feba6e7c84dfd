// A server that speaks as much S3 as the archive needs: PUT and GET of objects, with signatures verified (SigV4).
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { AwsV4Signer } from 'aws4fetch';

export interface BucketServer {
  readonly url: string;
  /** Objects by `/BUCKET/KEY`. */
  readonly objects: Map<string, Buffer>;
  close(): Promise<void>;
}

export const BUCKET = 'ledger-rows';
export const KEYS = { accessKeyId: 'AKIATEST', secretAccessKey: 'a/secret+of=tests', region: 'eu-central-1' };

/** One bucket and one access key. `break`: this many bytes of a body are read, then the connection ends. */
export async function startBucketServer(): Promise<BucketServer> {
  const objects = new Map<string, Buffer>();
  const server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => undefined);
    if (body === undefined) return;
    const path = decodeURIComponent(request.url ?? '');
    const code = await errorOf(request, body);
    const object = objects.get(path);
    const fail = (status: number, error: string) =>
      response.writeHead(status).end(`<?xml version="1.0"?><Error><Code>${error}</Code><Message>…</Message></Error>`);
    if (code !== undefined) fail(403, code);
    else if (!path.startsWith(`/${BUCKET}/`)) fail(404, 'NoSuchBucket');
    else if (request.method === 'PUT') {
      objects.set(path, body);
      response.end();
    } else if (object === undefined) fail(404, 'NoSuchKey');
    else response.end(object);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The error code of S3 for a request that is not signed with the key of this server. */
async function errorOf({ method = '', url, headers }: IncomingMessage, body: Buffer): Promise<string | undefined> {
  const {
    authorization = '',
    host,
    'x-amz-date': datetime,
    'x-amz-content-sha256': hash,
    'x-amz-security-token': token,
  } = headers;
  const [, id, signed = ''] = /Credential=([^/]+)\/.*SignedHeaders=([^,]+)/.exec(authorization) ?? [];
  if (id !== KEYS.accessKeyId) return 'InvalidAccessKeyId';
  if (!signed.split(';').includes('x-amz-content-sha256')) return 'SignatureDoesNotMatch';
  if (hash !== createHash('sha256').update(body).digest('hex')) return 'XAmzContentSHA256Mismatch';
  const expected = await new AwsV4Signer({
    ...KEYS,
    method,
    url: `http://${host}${url}`,
    headers: { 'x-amz-content-sha256': hash },
    service: 's3',
    datetime: String(datetime),
    ...(token !== undefined && { sessionToken: String(token) }),
  }).sign();
  return expected.headers.get('authorization') === authorization ? undefined : 'SignatureDoesNotMatch';
}
