// One sequence of writes, played on an API server.
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import type { Answer, TestControlPlane } from '../../support/control-plane.ts';
import { type ApplyCase, applyKinds, type Step, type StepAnswer } from './cases.ts';

type Call = TestControlPlane['call'];

/** Writes each step to an object of this name; answers what the server said. */
export async function play(call: Call, { of, steps }: Omit<ApplyCase, 'name'>, name: string): Promise<StepAnswer[]> {
  const answers: StepAnswer[] = [];
  for (const step of steps) {
    const { code, body } = await write(call, of, step, name);
    answers.push(code < 300 ? lasting(body as JsonObject) : 'refused');
  }
  return answers;
}

function write(call: Call, of: ApplyCase['of'], step: Step, name: string): Promise<Answer> {
  const { apiVersion, kind, path } = applyKinds[of];
  const object = (part: JsonObject) => ({
    apiVersion,
    kind,
    ...part,
    metadata: { ...(part.metadata as JsonObject), name },
  });
  const address = `${path}/${name}${step.subresource ? `/${step.subresource}` : ''}?fieldManager=${step.by}`;
  if (step.post) return call('POST', `${path}?fieldManager=${step.by}`, object(step.post));
  if (step.merge) return call('PATCH', address, step.merge, { 'content-type': 'application/merge-patch+json' });
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  return call('PATCH', `${address}&force=true`, object(step.apply ?? {}), headers);
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * The object without what differs from run to run, who owns what, and kubectl's note, which ours does not bring up to
 * date.
 */
function lasting(object: JsonObject): JsonObject {
  const { managedFields, uid, resourceVersion, creationTimestamp, name, generation, ...metadata } =
    object.metadata as JsonObject;
  const { annotations, ...others } = metadata as { annotations?: JsonObject };
  const { [lastApplied]: _, ...noted } = annotations ?? {};
  const kept = { ...others, ...(Object.keys(noted).length > 0 && { annotations: noted }) };
  return JSON.parse(JSON.stringify({ ...object, metadata: kept }).replaceAll(String(name), 'NAME'));
}
