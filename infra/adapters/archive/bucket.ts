// The archive in a bucket of S3, or of a server that speaks S3 (`s3://bucket/prefix`).
import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Archive } from '#core/ports/archive.ts';
import type { AwsKeys } from './aws-keys.ts';

export interface BucketAddress {
  readonly url: string;
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
}

interface BucketDependencies {
  readonly region: string;
  /** The address of a server that speaks S3; absent: Amazon's. */
  readonly endpoint?: string | undefined;
  readonly keys: (signal: AbortSignal) => Promise<AwsKeys>;
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds since the Unix epoch, for signatures. */
  readonly now: () => number;
}

/** Needs the rights `s3:PutObject` and `s3:GetObject`; `s3:ListBucket`, or a file that is missing looks forbidden. */
export function createBucket({ url, bucket, prefix }: BucketAddress, deps: BucketDependencies): Archive {
  const base = baseOf(bucket, deps);
  const send = async (method: 'GET' | 'PUT', path: string, { body, signal }: SendOptions): Promise<Response> => {
    const address = [base, ...(prefix === '' ? [] : [prefix]), path].join('/');
    try {
      const headers = {
        'x-amz-content-sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      };
      const datetime = new Date(deps.now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
      const keys = await deps.keys(signal);
      const target = { method, url: address, headers, service: 's3', region: deps.region, datetime, ...keys };
      const signed = await new AwsV4Signer(target).sign();
      return await deps.fetch(signed.url.href, {
        method,
        headers: Object.fromEntries(signed.headers),
        redirect: 'manual',
        signal,
        ...(body !== undefined && { body: body as Uint8Array<ArrayBuffer> }),
      });
    } catch (error) {
      throw new Error(`${url}: ${method} to ${new URL(base).host}: ${reasonAndCausesOf(error)}`, { cause: error });
    }
  };
  return {
    url,
    write: async (path, body, signal) => {
      const response = await send('PUT', path, { body, signal });
      if (!response.ok) throw await toErrorWithAdvice(url, 'PUT', response);
      await response.body?.cancel();
    },
    read: async (path, signal) => {
      const response = await send('GET', path, { signal });
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
      const error = await toErrorWithAdvice(url, 'GET', response);
      if (error.code === 'NoSuchKey') return undefined;
      throw error;
    },
  };
}

interface SendOptions {
  readonly signal: AbortSignal;
  readonly body?: Uint8Array;
}

/** Amazon wants the bucket in the host; a certificate does not cover a bucket with dots. */
function baseOf(bucket: string, { region, endpoint }: BucketDependencies): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/$/, '')}/${bucket}`;
  const host = `s3.${region}.amazonaws.com`;
  return bucket.includes('.') ? `https://${host}/${bucket}` : `https://${bucket}.${host}`;
}

/** The next step of a person, by the error code of S3. */
const ADVICE: Readonly<Record<string, string>> = {
  InvalidAccessKeyId: 'Check AWS_ACCESS_KEY_ID',
  SignatureDoesNotMatch: 'Check AWS_SECRET_ACCESS_KEY',
  ExpiredToken: 'Renew AWS_SESSION_TOKEN',
  AccessDenied: 'Give the access key or the role s3:PutObject, s3:GetObject and s3:ListBucket for the bucket',
  NoSuchBucket: 'Create the bucket, or correct ARCHIVE_URL',
  PermanentRedirect: 'Set AWS_REGION to the region of the bucket',
  AuthorizationHeaderMalformed: 'Set AWS_REGION to the region of the bucket',
  RequestTimeTooSkewed: 'Correct the clock of the node',
};

class BucketError extends Error {
  override readonly name = 'BucketError';
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/** The first KiB of a reply has the error code, in XML. */
const MAX_ERROR = 1024;

async function toErrorWithAdvice(url: string, method: string, response: Response): Promise<BucketError> {
  const { status } = response;
  const text = (await response.text()).slice(0, MAX_ERROR);
  const [, code = status === 404 && method === 'GET' && text === '' ? 'NoSuchKey' : ''] =
    /<Code>(\w{1,64})<\/Code>/.exec(text) ?? [];
  const unknown = status < 500 ? 'Check ARCHIVE_URL, the access key and its rights' : 'The next resync tries again';
  const advice = ADVICE[code] ?? unknown;
  return new BucketError(`${url}: ${method} was answered with ${`${status} ${code}`.trim()}. ${advice}`, code);
}
