// The smallest server of reviews: node:http and a fixed answer. Its cold start is Node's own.
import { createServer } from 'node:http';

const ANSWER = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid: 'review-1', allowed: true },
});

const server = createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  process.stdout.write(`{"message":"listening","url":"http://127.0.0.1:${port}"}\n`);
});
