import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { consolidationContract } from "./consolidation.test-kit.ts";

onPostgres("consolidation", (open) => consolidationContract("postgres", open));
