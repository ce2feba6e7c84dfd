// The part of the cluster that a request asks the reconciler to look at. An event only names objects; its other content
// is not trusted.
import * as z from 'zod';
import { err, ok, type Result } from '#core/failure/result.ts';
import { parseJson } from '#core/json/json.ts';
import { instanceOfWorkload } from '#core/keys/object-names.ts';
import { type KindName, kinds } from '#crds/kinds/kinds.ts';

export type RunTarget =
  | { readonly look: 'everywhere' }
  | { readonly look: 'at'; readonly kind: KindName; readonly namespace: string; readonly name: string }
  /** The key policies of an instance, without its scope objects: a trigger for an instance begins with them. */
  | { readonly look: 'policies'; readonly namespace: string; readonly name: string }
  /** An event about an object of another kind. */
  | { readonly look: 'nowhere' };

type CloudEventRequest = { header(name: string): string | undefined; readonly body: string };

const PING = 'dev.knative.sources.ping';
const API_SERVER = /^dev\.knative\.apiserver\.ref\.(add|update|delete)$/;
/** The CloudEvent type of the admission webhook's triggers. */
const TRIGGER = 'dev.gateway-operator.trigger';

const Reference = z.object({
  kind: z.string().min(1),
  namespace: z.string().optional(),
  name: z.string().min(1).max(253),
});

/** Reads an empty body, or a CloudEvent in binary mode. The failure is a sentence for the sender. */
export function toRunTarget({ header, body }: CloudEventRequest): Result<RunTarget, string> {
  const type = header('ce-type');
  if (type === undefined) {
    if (body.trim() === '') return ok({ look: 'everywhere' });
    return err('the body is neither empty (a full resync) nor a CloudEvent in binary mode: there is no header ce-type');
  }
  const version = header('ce-specversion');
  if (version !== '1.0') return err(`ce-specversion: Invalid value: ${JSON.stringify(version ?? null)}: must be "1.0"`);
  if (type === PING) return ok({ look: 'everywhere' });
  if (type === TRIGGER || API_SERVER.test(type)) return toReferred(parseJson(body));
  const known = `${PING}, dev.knative.apiserver.ref.* or ${TRIGGER}`;
  return err(`ce-type: Invalid value: ${JSON.stringify(type)}: must be ${known}`);
}

function toReferred(data: unknown): Result<RunTarget, string> {
  const reference = Reference.safeParse(data);
  if (!reference.success) {
    const problems = reference.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`);
    return err(`the data of the CloudEvent names no object: ${problems.join('; ')}`);
  }
  const { kind, namespace, name } = reference.data;
  const own = kinds.find((candidate) => candidate.kind === kind)?.kind;
  const served = own === undefined ? instanceOfWorkload(kind, name) : undefined;
  if (own === undefined && (served === undefined || !namespace)) return ok({ look: 'nowhere' });
  if (!namespace) return err(`the data of the CloudEvent names a ${kind} without a namespace`);
  return ok({ look: 'at', kind: own ?? 'GatewayInstance', namespace, name: served ?? name });
}
