// What does `kubectl apply` of a `kind: List` ask the old OpenAPI for? Only whether the server validates fields; v3 has everything else.
import protobuf from 'protobufjs/minimal.js';

/** kubectl asks for it with an @ before v1.0, which no Content-Type may hold. The one form in which it reads `/openapi/v2`. */
export const openApiV2Type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const namespaceKind = 'group: ""\nkind: Namespace\nversion: v1\n';

/** A message of field number → text or message. Numbers are those of gnostic's openapiv2.proto, which the API server speaks. */
type Fields = ReadonlyArray<readonly [number: number, value: string | Uint8Array]>;

/** A document with a single operation, the PATCH of a namespace: for a List kubectl takes the answer from there. */
export function openApiV2(): Uint8Array {
  const validation = message([
    [2, 'query'],
    [4, 'fieldValidation'],
    [5, 'string'],
  ]);
  // Parameter → non-body parameter → query parameter.
  const parameter = message([[1, message([[2, message([[3, validation]])]])]]);
  const kind = message([
    [1, 'x-kubernetes-group-version-kind'],
    [2, message([[2, namespaceKind]])],
  ]);
  const patch = message([
    [5, 'patchNamespace'],
    [8, parameter],
    [13, kind],
  ]);
  const path = message([
    [1, '/api/v1/namespaces/{name}'],
    [2, message([[8, patch]])],
  ]);
  const info = message([
    [1, 'Kubernetes'],
    [2, 'v1'],
  ]);
  return message([
    [1, '2.0'],
    [2, info],
    [8, message([[2, path]])],
  ]);
}

function message(fields: Fields): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const [number, value] of fields) {
    writer.uint32((number << 3) | 2);
    if (typeof value === 'string') writer.string(value);
    else writer.bytes(value);
  }
  return writer.finish();
}
