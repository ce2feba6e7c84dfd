// When is what runs a gateway news? When it serves, or stops serving, otherwise than before: its instance is looked at then.
import { INSTANCE_API_VERSION, OWNED, OWNED_LABEL } from '#crds/group.ts';
import { judgeDeployment } from '../../functions/reconcile/plan/judge-deployment.ts';
import { PARTS } from '../../functions/reconcile/workload/parts.ts';
import type { Source } from './changes.ts';

/** Deployments that reconcile made. Knative Services are told by an ApiServerSource, where there is Knative. */
export const DEPLOYMENTS: Source = {
  resource: PARTS.Deployment,
  labelSelector: `${OWNED_LABEL}=${OWNED}`,
  about: ({ metadata: { namespace, ownerReferences = [] } }) => {
    const owner = ownerReferences.find(
      ({ kind, apiVersion }) => apiVersion === INSTANCE_API_VERSION && kind === 'GatewayInstance',
    );
    return owner && { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name };
  },
  news: (object) => {
    const { generation, deletionTimestamp, labels, annotations } = object.metadata;
    return [generation, deletionTimestamp, labels, annotations, judgeDeployment(object)];
  },
};
