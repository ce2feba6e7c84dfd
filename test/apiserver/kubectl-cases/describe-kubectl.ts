// Does the stock kubectl work against this API server?
import { afterAll, beforeAll, describe } from 'vitest';
import { admissionCases } from './admission.ts';
import { type ApiServer, type Bed, createBed } from './bed.ts';
import { deletingCases } from './deleting.ts';
import { readingCases } from './reading.ts';
import { watchingCases } from './watching.ts';
import { widgetDefinition } from './widgets.ts';
import { writingCases } from './writing.ts';

/** All the cases, one API server for all of them; the same ones for the embedded cluster and a real one. */
export function describeKubectl(start: () => Promise<ApiServer>): void {
  let server: ApiServer;
  let bed: Bed;
  beforeAll(async () => {
    server = await start();
    bed = createBed(server.kubeconfig);
    await bed.must('apply -f -', widgetDefinition);
    await bed.must('wait --for=condition=Established crd/widgets.kubectl.example.com --timeout=20s');
    await bed.until('get widgets', ({ code }) => code === 0);
    await bed.until('get sa default', ({ code }) => code === 0);
    await bed.until('explain widgets.spec.color', ({ code }) => code === 0);
  });
  afterAll(async () => {
    bed?.remove();
    await server?.stop();
  });
  const current = () => bed;
  describe('reading', () => readingCases(current));
  describe('writing', () => writingCases(current));
  describe('deleting', () => deletingCases(current));
  describe('watching', () => watchingCases(current));
  describe('admission', () => admissionCases(current));
}
