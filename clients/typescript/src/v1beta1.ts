/** The contract's messages, enums and services of nodewise.v1beta1, as generated. */
export * from "./gen/nodewise/v1beta1/admin_service_pb.js";
export * from "./gen/nodewise/v1beta1/completion_offer_pb.js";
export * from "./gen/nodewise/v1beta1/completion_pb.js";
export * from "./gen/nodewise/v1beta1/completion_service_pb.js";
export * from "./gen/nodewise/v1beta1/diagnosis_service_pb.js";
export * from "./gen/nodewise/v1beta1/evaluation_service_pb.js";
export * from "./gen/nodewise/v1beta1/plan_service_pb.js";
export * from "./gen/nodewise/v1beta1/run_estimate_pb.js";
export * from "./gen/nodewise/v1beta1/sharing_service_pb.js";
export * from "./gen/nodewise/v1beta1/simulation_pb.js";
export * from "./gen/nodewise/v1beta1/simulation_service_pb.js";
