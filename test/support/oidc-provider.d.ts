/** What the tests use of the package, which has no types of its own. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: unknown): Promise<void>;
    readonly Grant: new (properties: { accountId: string; clientId: string }) => Grant;
  }

  type Interaction = { prompt: { name: string }; params: { client_id: string; scope?: string } };

  type Grant = { addOIDCScope(scope: string): void; save(): Promise<string> };
}
