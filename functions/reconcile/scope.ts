// Where does a request tell us to look? An event says only "look here"; nothing else in it is believed.
import * as z from 'zod';
import { instanceOfWorkload } from '#core/names.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type KindName, kinds } from '#crds/kinds.ts';

export type Scope =
  | { readonly look: 'everywhere' }
  | { readonly look: 'at'; readonly kind: KindName; readonly namespace: string; readonly name: string }
  /** An event about something that is not ours. */
  | { readonly look: 'nowhere' };

export interface Posted {
  header(name: string): string | undefined;
  readonly body: string;
}

const PING = 'dev.knative.sources.ping';
const API_SERVER = /^dev\.knative\.apiserver\.(ref|resource)\.(add|update|delete)$/;
/** What admission and others of ours post. */
export const HINT = 'dev.gateway-operator.hint';

const Envelope = z.object({ specversion: z.literal('1.0'), type: z.string().min(1), data: z.unknown() });
const name = z.string().min(1).max(253);
const Reference = z.object({ kind: z.string().min(1), namespace: z.string().optional(), name });
const Resource = z.object({
  kind: z.string().min(1),
  metadata: z.object({ namespace: z.string().optional(), name }),
});

/** The failure is a sentence for whoever posted. */
export function toScope(posted: Posted): Result<Scope, string> {
  const contentType = posted.header('content-type')?.toLowerCase() ?? '';
  const binaryType = posted.header('ce-type');
  if (contentType.startsWith('application/cloudevents-batch')) return err('post one CloudEvent at a time, not a batch');
  if (contentType.startsWith('application/cloudevents') && posted.body.trim() !== '') return structured(posted.body);
  if (binaryType !== undefined) return binary(binaryType, posted);
  if (posted.body.trim() === '') return ok({ look: 'everywhere' });
  return err(
    'the body is neither empty (a full sweep) nor a CloudEvent: no ce-type header, no content type application/cloudevents+json',
  );
}

function structured(body: string): Result<Scope, string> {
  const json = parse(body);
  if (json === undefined) return err('the CloudEvent is not JSON');
  const envelope = Envelope.safeParse(json);
  if (!envelope.success) return err(`the CloudEvent is not one: ${complaint(envelope.error)}`);
  return scopeOf(envelope.data.type, envelope.data.data);
}

function binary(type: string, posted: Posted): Result<Scope, string> {
  const version = posted.header('ce-specversion');
  if (version !== '1.0') return err(`the CloudEvent has ce-specversion ${JSON.stringify(version ?? null)}, not "1.0"`);
  return scopeOf(type, posted.body.trim() === '' ? undefined : parse(posted.body));
}

function scopeOf(type: string, data: unknown): Result<Scope, string> {
  if (type === PING) return ok({ look: 'everywhere' });
  const apiServer = API_SERVER.exec(type);
  if (apiServer === null && type !== HINT) {
    return err(
      `CloudEvents of type ${JSON.stringify(type)} mean nothing here: ${PING}, dev.knative.apiserver.ref.* and ${HINT} do`,
    );
  }
  const reference = apiServer?.[1] === 'resource' ? fromResource(data) : Reference.safeParse(data);
  if (!reference.success) return err(`the data of the CloudEvent names no object: ${complaint(reference.error)}`);
  const { kind, namespace, name: named } = reference.data;
  const own = kinds.find((candidate) => candidate.kind === kind);
  const served = instanceOfWorkload(kind, named);
  if (own === undefined && served !== undefined && namespace !== undefined && namespace !== '')
    return ok({ look: 'at', kind: 'GatewayInstance', namespace, name: served });
  if (own === undefined) return ok({ look: 'nowhere' });
  if (namespace === undefined || namespace === '')
    return err(`the data of the CloudEvent names a ${kind} without a namespace`);
  return ok({ look: 'at', kind: own.kind, namespace, name: named });
}

function fromResource(data: unknown) {
  const parsed = Resource.safeParse(data);
  if (!parsed.success) return parsed;
  const { kind, metadata } = parsed.data;
  return { success: true as const, data: { kind, ...metadata } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function complaint(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`).join('; ');
}
