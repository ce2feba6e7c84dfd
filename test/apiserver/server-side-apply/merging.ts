// A real API server serves a kind a little before it merges by its schema.
import type { Answer, TestControlPlane } from '../../support/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { applyKinds } from './cases.ts';

const { apiVersion, kind, path } = applyKinds.Widget;
const name = 'merges';
const headers = { 'content-type': 'application/apply-patch+yaml' };

/**
 * Until what two managers put into one set is in it side by side; without a schema a list is somebody's as a whole.
 */
export async function merging({ call }: Pick<TestControlPlane, 'call'>): Promise<void> {
  const apply = (by: string, element: string): Promise<Answer> => {
    const object = { apiVersion, kind, metadata: { name }, spec: { set: [element] } };
    return call('PATCH', `${path}/${name}?fieldManager=${by}`, object, headers);
  };
  const look = async (): Promise<unknown> => {
    await apply('me', 'a');
    const { code, body } = await apply('you', 'b');
    await call('DELETE', `${path}/${name}`);
    return code === 200 ? (body as { spec: { set?: ReadonlyArray<string> } }).spec.set : code;
  };
  await eventually(look, (seen) => String(seen) === 'a,b');
}
