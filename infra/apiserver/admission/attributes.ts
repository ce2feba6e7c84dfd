// What is being attempted, as admission sees it?
import type { KubeObject } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';

export type AdmissionAttributes = {
  readonly request: ApiRequest;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  /** Absent on DELETE. */
  readonly object: KubeObject | undefined;
  /** Absent on CREATE. */
  readonly old: KubeObject | undefined;
  /** DeleteOptions as they were sent, on DELETE. */
  readonly options?: object;
};
