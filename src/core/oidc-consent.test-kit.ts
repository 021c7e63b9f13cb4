import type { IncomingMessage, ServerResponse } from "node:http";
import type { Provider } from "oidc-provider";

/** Answers a provider's page for a user who signs in as `accountId` and agrees to everything. */
export async function consent(
  provider: Provider,
  accountId: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt, params } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId } });
    return;
  }
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? "");
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}
