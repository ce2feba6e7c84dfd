// The APIs of a gateway: every route that spends.
import type { Api } from './api.ts';
import { chat } from './chat/chat.ts';
import { embeddings } from './embeddings/embeddings.ts';
import { messages } from './messages/messages.ts';
import { responses } from './responses/responses.ts';

export const APIS: ReadonlyArray<Api> = [chat, messages, responses, embeddings];
