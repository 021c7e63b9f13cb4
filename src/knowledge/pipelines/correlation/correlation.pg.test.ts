import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { correlationContract } from "./correlation.test-kit.ts";

onPostgres("correlation", (open) => correlationContract("postgres", open));
