// Webhooks that the kubectl cases put in the way of writes.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openCertificates } from '../../../infra/platforms/local/cluster/certificates.ts';

export type ReviewRequest = {
  readonly uid: string;
  readonly operation: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly dryRun: boolean;
  readonly subResource?: string;
  readonly userInfo: { readonly username: string; readonly groups: readonly string[] };
  readonly kind: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>> | null;
  readonly object:
    | (Record<string, unknown> & { metadata: Record<string, unknown>; spec: Record<string, unknown> })
    | null;
  readonly oldObject: Record<string, unknown> | null;
};

export type WebhookServer = {
  readonly url: string;
  /** For `clientConfig.caBundle`. */
  readonly caBundle: string;
  /** What was asked at a path, and with which query. */
  asked(path: string): ReadonlyArray<{
    readonly request: ReviewRequest;
    readonly query: string;
    readonly review: Readonly<Record<string, unknown>>;
  }>;
  /** Answers a path from now on; `forget` clears what was asked. */
  answer(path: string, reply: (request: ReviewRequest) => object): void;
  forget(): void;
  stop(): Promise<void>;
};

/**
 * HTTPS on 127.0.0.1. A reply is the `response` without its uid; `raw` replaces the whole body, `http` the code, `type`
 * the content type, `after` waits.
 */
export async function startWebhookServer(): Promise<WebhookServer> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-webhook-'));
  const { ca, cert, key } = await openCertificates(folder, new Date());
  const asked: Array<{
    path: string;
    query: string;
    request: ReviewRequest;
    review: Readonly<Record<string, unknown>>;
  }> = [];
  const replies = new Map<string, (request: ReviewRequest) => object>();
  const server = createServer({ cert, key }, (message, response) => {
    const chunks: Buffer[] = [];
    message.on('data', (chunk) => chunks.push(chunk));
    message.on('end', async () => {
      const url = new URL(message.url ?? '/', 'https://hook');
      const review = JSON.parse(Buffer.concat(chunks).toString());
      asked.push({ path: url.pathname, query: url.search, request: review.request, review });
      const {
        after = 0,
        http = 200,
        raw,
        type = 'application/json',
        ...reply
      } = (replies.get(url.pathname) ?? (() => ({ allowed: true })))(review.request) as Record<string, unknown>;
      await pause(Number(after));
      const body = raw ?? {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: review.request.uid, ...reply },
      };
      response.writeHead(Number(http), { 'content-type': String(type) });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caBundle: Buffer.from(ca).toString('base64'),
    asked: (path) => asked.filter((one) => one.path === path),
    answer: (path, reply) => void replies.set(path, reply),
    forget() {
      asked.length = 0;
      replies.clear();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A JSON patch as a mutating webhook sends it. */
export function patching(...operations: object[]): object {
  return { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(operations)).toString('base64') };
}
