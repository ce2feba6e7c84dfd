// The APIs of a gateway: every route that spends.
import type { Api } from './api.ts';
import { chat } from './chat/chat.ts';

export const APIS: ReadonlyArray<Api> = [chat];
