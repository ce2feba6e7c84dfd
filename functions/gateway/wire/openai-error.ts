// What does a refusal in OpenAI's dialect say? Its envelope, and the flat ones of others (`{"message"}`, `{"detail"}`).
import type { WireError } from './dialect.ts';
import { member, textOf } from './json.ts';

export function toWireError(body: unknown): WireError {
  const error = member(body, 'error') ?? body;
  const message = typeof error === 'string' ? error : (member(error, 'message') ?? member(error, 'detail'));
  const code = member(error, 'code') ?? member(error, 'type');
  const status = Number(member(error, 'status') ?? member(error, 'code'));
  return {
    message: typeof message === 'string' ? message : message === undefined ? undefined : JSON.stringify(message),
    param: textOf(member(error, 'param')),
    code: typeof code === 'number' ? String(code) : textOf(code),
    status: Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined,
  };
}
