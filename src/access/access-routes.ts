import * as tokens from "./api-tokens.ts";
import { transferOwnershipRoute } from "./ownership.ts";
import * as signIn from "./sign-in.ts";
import * as users from "./users.ts";
import * as sessions from "./web-sessions.ts";
import * as web from "./web-sign-in.ts";

export const ACCESS_ROUTES = [
  signIn.loginRoute,
  signIn.refreshRoute,
  signIn.logoutRoute,
  signIn.authConfigRoute,
  signIn.selfRoute,
  web.webLoginRoute,
  web.webTokenRoute,
  web.webLogoutRoute,
  web.webStartRoute,
  web.webCallbackRoute,
  sessions.listWebSessionsRoute,
  sessions.endWebSessionRoute,
  sessions.endOtherWebSessionsRoute,
  sessions.changePasswordRoute,
  tokens.createTokenRoute,
  tokens.listTokensRoute,
  tokens.revokeTokenRoute,
  users.listUsersRoute,
  users.createUserRoute,
  users.changeRoleRoute,
  users.resetPasswordRoute,
  users.deleteUserRoute,
  users.auditRoute,
  transferOwnershipRoute,
];
