// kubectl cases: the same ones for the embedded API server and a real one.
import { afterAll, beforeAll, describe } from 'vitest';
import { widgetDefinition } from '../widgets.ts';
import { admissionCases } from './admission.ts';
import { deletingCases } from './deleting.ts';
import { type ApiServer, createKubectlHarness, type KubectlHarness } from './harness.ts';
import { readingCases } from './reading.ts';
import { watchingCases } from './watching.ts';
import { writingCases } from './writing.ts';

/** All the cases, one API server for all of them; the same ones for the embedded cluster and a real one. */
export function describeKubectl(start: () => Promise<ApiServer>): void {
  let server: ApiServer;
  let kubectl: KubectlHarness;
  beforeAll(async () => {
    server = await start();
    kubectl = createKubectlHarness(server.kubeconfig);
    await kubectl.must('apply -f -', widgetDefinition);
    await kubectl.must('wait --for=condition=Established crd/widgets.kubectl.example.com --timeout=20s');
    await kubectl.until('get widgets', ({ code }) => code === 0);
    await kubectl.until('get sa default', ({ code }) => code === 0);
    await kubectl.until('explain widgets.spec.color', ({ code }) => code === 0);
  });
  afterAll(async () => {
    kubectl?.remove();
    await server?.stop();
  });
  const current = () => kubectl;
  describe('reading', () => readingCases(current));
  describe('writing', () => writingCases(current));
  describe('deleting', () => deletingCases(current));
  describe('watching', () => watchingCases(current));
  describe('admission', () => admissionCases(current));
}
