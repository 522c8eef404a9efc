/**
 * Client of Nodewise, a service that predicts how fast a distributed training job will be on n
 * nodes. Begin with {@link io.github.nodewise.NodewiseClient}; the contract's messages are in
 * {@code io.github.nodewise.v1} and {@code io.github.nodewise.v1beta1}.
 */
package io.github.nodewise;
