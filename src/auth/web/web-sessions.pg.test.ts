import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { webSessionsContract } from "./contract-web-sessions.test-kit.ts";

onPostgres("browsers' sessions", (open) => webSessionsContract("postgres", open));
