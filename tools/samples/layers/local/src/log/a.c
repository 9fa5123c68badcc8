/* SPDX-License-Identifier: Apache-2.0 */
_Thread_local int log_depth;
