import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { judgingContract } from "./judging.test-kit.ts";

onPostgres("judging of alike memories", (open) => judgingContract("postgres", open));
