import { CONNECTION_ROUTES } from "./connections.ts";
import * as credentials from "./credentials.ts";
import * as oauth from "./oauth.ts";

export const CREDENTIAL_ROUTES = [
  credentials.createCredentialRoute,
  credentials.listCredentialsRoute,
  credentials.getCredentialRoute,
  credentials.shareCredentialRoute,
  credentials.deleteCredentialRoute,
  oauth.startOAuthRoute,
  oauth.oauthCallbackRoute,
  oauth.confirmOAuthRoute,
  oauth.oauthFlowRoute,
  ...CONNECTION_ROUTES,
];
